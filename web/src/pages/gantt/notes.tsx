/** Under the picture: what lies outside of it, and how it is moved. */

import type { ReactNode } from "react";
import type { GanttView } from "../../api/types";
import { count } from "../../format";
import { Button, Command } from "../../ui/parts";
import type { Plan } from "./model";
import { setRange } from "./range";
import { type Window, pan } from "./scale";

const STEP = 0.8;

export function Notes({ plan, found, view }: { plan: Plan; found: GanttView; view: Window }): ReactNode {
  const later = found.later + plan.bars.filter((bar) => bar.start >= view.to).length;
  const earlier = found.earlier + plan.bars.filter((bar) => bar.end <= view.from).length;
  const step = (view.to - view.from) * STEP;
  return (
    <div className="gantt-notes faint">
      <div>
        {earlier ? <Button small kind="ghost" icon="left" onClick={() => setRange(pan(view, -step), "")}>{count(earlier)} earlier</Button> : null}
        {later ? <Button small kind="ghost" icon="right" onClick={() => setRange(pan(view, step), "")}>{count(later)} later</Button> : null}
        {found.left_out ? <span>{count(found.left_out)} more in this range are left out: zoom in.</span> : null}
        {plan.bars.length === 0 ? <span>Nothing runs or is planned here. <Command text="rota add -l core=1,walltime=10m -- sleep 60" /></span> : null}
      </div>
      <p id="gantt-keys">Drag or ← → to move, Ctrl + wheel, pinch or + − to zoom; click a host for its cores.</p>
    </div>
  );
}
