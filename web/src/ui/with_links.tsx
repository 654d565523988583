/** A message in which each job is a link. */

import { Fragment, type ReactNode } from "react";
import { Link } from "../router";

export function WithLinks({ text }: { text: string }): ReactNode {
  return text.split(/(\bjob \d+)/).map((part, at) => {
    const id = at % 2 ? /\d+$/.exec(part)?.[0] : undefined;
    return <Fragment key={at}>{id ? <Link to={`/jobs/${id}`}>{part}</Link> : part}</Fragment>;
  });
}
