/** Below the chart: what is outside of it, and how to move it. */

import type { ReactNode } from "react";
import type { GanttView } from "../../api/types";
import { count } from "../../format";
import { Button, Command } from "../../ui/parts";
import type { Plan } from "./model";
import { setRange } from "./range";
import { type Window, pan } from "./scale";

const STEP = 0.8;

export function Notes({ plan, found, view }: { plan: Plan; found: GanttView; view: Window }): ReactNode {
  const live = plan.bars.filter((bar) => bar.kind !== "ended");
  const later = found.later + live.filter((bar) => bar.start >= view.to).length;
  const earlier = found.earlier + live.filter((bar) => bar.end <= view.from).length;
  const { past } = found;
  const step = (view.to - view.from) * STEP;
  return (
    <div className="gantt-notes faint">
      <div>
        {earlier ? <Button small kind="ghost" icon="left" onClick={() => setRange(pan(view, -step), "")}>{count(earlier)} earlier</Button> : null}
        {later ? <Button small kind="ghost" icon="right" onClick={() => setRange(pan(view, step), "")}>{count(later)} later</Button> : null}
        {found.left_out ? <span>{count(found.left_out)} more in this range are left out: zoom in.</span> : null}
        {past?.slice_s ? (
          <span>{count(past.total)} attempts ended: too many to draw one by one, so it shows how much of each host was in use. Zoom in to see them.</span>
        ) : null}
        {past?.removed ? <span>{count(past.removed)} {past.removed === 1 ? "attempt" : "attempts"} of these hours belonged to jobs that were removed.</span> : null}
        {plan.bars.length === 0 && !past?.slice_s ? <span>Nothing ran, runs or is planned here. <Command text="rota add -l core=1,walltime=10m -- sleep 60" /></span> : null}
      </div>
      <p id="gantt-keys">Drag or ← → to move, Ctrl + wheel, pinch or + − to zoom; click a host for its cores.</p>
    </div>
  );
}
