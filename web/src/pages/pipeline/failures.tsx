/** What failed, and what that blocks. */

import type { ReactNode } from "react";
import type { PipelinePictureView } from "../../api/types";
import { count, plural } from "../../format";
import { Link } from "../../router";
import { Button, Card } from "../../ui/parts";
import { useActing } from "./doing";

const SHOWN = 8;

export function Failures({ picture }: { picture: PipelinePictureView }): ReactNode {
  const { act, busy, mine } = useActing(picture);
  if (picture.failures.length === 0) return null;
  const shown = picture.failures.slice(0, SHOWN);
  const more = picture.failures_total - shown.length;
  return (
    <Card title="Failures" aside={more ? <Link to={`/pipelines/${picture.session}?state=failed#elements`}>all {count(picture.failures_total)}</Link> : undefined}>
      <ul className="failures">
        {shown.map((each) => (
          <li key={each.element}>
            <div>
              <b>{each.element}</b> failed at <b>{each.stage}</b>
              {each.outcome === "failed" ? <span className="muted"> after its last retry</span> : null}
              {each.blocks === 0 ? <span className="muted"> · blocks nothing</span> : null}
            </div>
            {each.blocks ? (
              <p className="muted">
                blocks <b className="tone-of-failed num">{plural(each.blocks, "element")}</b>: {each.blocked.slice(0, 6).join(", ")}
                {each.blocks > 6 ? " …" : ""}
              </p>
            ) : null}
            <span className="failure-acts">
              {each.job === null ? null : <Link to={`/jobs/${each.job}`}>job {each.job}<span className="hidden"> of {each.element}</span></Link>}
              {mine ? (
                <Button small kind="ghost" icon="retry" disabled={busy} aria-label={`Retry ${each.element}`}
                  onClick={() => act({ action: "retry", elements: [each.element] }, `${each.element} tries again`)}>Retry</Button>
              ) : null}
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
