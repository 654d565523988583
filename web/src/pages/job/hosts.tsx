/** Where a job runs: the first of its hosts by name, and how many more there are. */

import { Fragment, type ReactNode } from "react";
import { Link } from "../../router";

const SHOWN = 4;

export function Hosts({ hosts }: { hosts: readonly string[] }): ReactNode {
  return (
    <span title={hosts.length > SHOWN ? hosts.join(", ") : undefined}>
      {hosts.slice(0, SHOWN).map((host, at) => (
        <Fragment key={host}>{at ? ", " : null}<Link to={`/machines/${encodeURIComponent(host)}`}>{host}</Link></Fragment>
      ))}
      {hosts.length > SHOWN ? ` and ${hosts.length - SHOWN} more` : null}
    </span>
  );
}
