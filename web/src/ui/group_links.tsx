/** The report groups of a job, each a link to its jobs. */

import { Fragment, type ReactNode } from "react";
import type { JobView } from "../api/types";
import { Link } from "../router";

/** All its groups. An older manager names only the first. */
export const groupsOf = ({ group, groups }: Pick<JobView, "group" | "groups">): string[] => (groups.length ? groups : [group]);

export function GroupLinks({ job, tabIndex }: { job: JobView; tabIndex?: number }): ReactNode {
  return groupsOf(job).map((name, at) => (
    <Fragment key={name}>
      {at ? ", " : null}
      <Link to={`/jobs?group=${encodeURIComponent(name)}`} {...(tabIndex === undefined ? {} : { tabIndex })}>{name}</Link>
    </Fragment>
  ));
}
