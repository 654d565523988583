/** Many elements at one stage, from the first to the last, as a strip of colours. A click leads to those elements. */

import type { MouseEvent, ReactNode } from "react";
import type { PipelinePictureView, StagePictureView } from "../../api/types";
import { count } from "../../format";
import { go } from "../../router";
import { bySums, ELEMENT_STATES, meaningOf, runs, wordOf } from "./words";

/** A failure takes at least this part of the height, so that it is seen. */
const THIN = 80;

export function Strip({ stage, picture }: { stage: StagePictureView; picture: PipelinePictureView }): ReactNode {
  const length = Math.max(1, stage.stretches.length);
  const counts = bySums(stage.sums);
  const label = ELEMENT_STATES.filter((state) => counts[state]).map((state) => `${count(counts[state])} ${state}`).join(", ");
  // Failures come last, so that nothing hides them.
  const drawn = runs(stage.stretches).sort((a, b) => Number(a.letter === "f") - Number(b.letter === "f"));
  const open = (event: MouseEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const place = Math.floor(((event.clientY - box.top) / box.height) * length) * picture.stretch;
    go(`/pipelines/${picture.session}?from=${Math.max(0, Math.min(picture.total - 1, place))}#elements`);
  };
  return (
    <svg className="strip-of" viewBox={`0 0 1 ${length}`} preserveAspectRatio="none" role="img" aria-label={`${stage.name}: ${label}`} onClick={open}>
      {drawn.map(({ letter, from, to }) => (
        <rect key={from} x={0} y={from} width={1} height={letter === "f" ? Math.max(to - from, length / THIN) : to - from} className={`paint-${wordOf(letter)}`}>
          <title>{`${stage.name}, elements ${count(from * picture.stretch + 1)}–${count(Math.min(picture.total, to * picture.stretch))}: ${meaningOf(letter)}`}</title>
        </rect>
      ))}
    </svg>
  );
}
