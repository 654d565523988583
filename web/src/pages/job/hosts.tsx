/** Where a job runs: the name of its first host, and the number of further ones. */

import { Fragment, type ReactNode } from "react";
import { byName } from "../../format";
import { Link } from "../../router";

const SHOWN = 4;

/** The command runs on the first host. */
export function Hosts({ hosts: told }: { hosts: readonly string[] }): ReactNode {
  const hosts = [...told].sort(byName);
  const title = told.length > 1 ? `Its command runs on ${told[0]}${hosts.length > SHOWN ? `; all: ${hosts.join(", ")}` : ""}` : undefined;
  return (
    <span title={title}>
      {hosts.slice(0, SHOWN).map((host, at) => (
        <Fragment key={host}>{at ? ", " : null}<Link to={`/machines/${encodeURIComponent(host)}`}>{host}</Link></Fragment>
      ))}
      {hosts.length > SHOWN ? ` and ${hosts.length - SHOWN} more` : null}
    </span>
  );
}
