/** The picture of the plan: names of hosts beside a canvas. */

import { type CSSProperties, type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { useTheme } from "../../theme";
import { Icon } from "../../ui/icons";
import { HoverCard } from "./card";
import { inks } from "./inks";
import { AXIS, type Laid, type Layout, layout, rowAt } from "./layout";
import { type Bar, type Plan, has, inUse } from "./model";
import type { By } from "./palette";
import type { Window } from "./scale";
import { Surface } from "./surface";

const SETTLED_MS = 200;

interface Hover { bar: Bar; x: number; y: number; touch: boolean }

interface Props {
  plan: Plan;
  view: Window;
  by: By;
  filter: string;
  moved: ReadonlySet<number>;
  clock: () => number;
  /** A new value redraws the line of the present, even if the window stays. */
  tick: number;
  onView: (view: Window) => void;
  onOpen: (bar: Bar) => void;
}

function Label({ laid, now, toggle }: { laid: Laid; now: number; toggle: (host: string) => void }): ReactNode {
  const { host, cores, down } = { ...laid.row, host: laid.row.host.host };
  const used = inUse(laid.row, now);
  return (
    <button
      type="button" className={`gantt-host ${down ? "down" : ""}`} aria-expanded={laid.open} onClick={() => toggle(host)}
      style={{ top: AXIS + laid.top, height: laid.height }} title={down ? `${host}: ${down}` : `${host}: ${used} of ${cores} cores in use`}
    >
      <Icon name={laid.open ? "down" : "right"} size={11} />
      <span className="clip">{host}</span>
      <small className="num">{down || `${used}/${cores}`}</small>
    </button>
  );
}

/** The visible rows and some around them. */
function useVisible(laid: Layout, scroller: HTMLElement | null): Laid[] {
  const [block, setBlock] = useState(0);
  useEffect(() => {
    if (!scroller) return;
    const scrolled = (): void => setBlock(Math.floor(scroller.scrollTop / 400));
    scroller.addEventListener("scroll", scrolled, { passive: true });
    return () => scroller.removeEventListener("scroll", scrolled);
  }, [scroller]);
  const first = rowAt(laid, block * 400 - 400);
  const last = rowAt(laid, block * 400 + 400 + (scroller?.clientHeight ?? 800) + 400);
  return laid.rows.slice(first, last + 1);
}

export function GanttChart({ plan, view, by, filter, moved, clock, tick, onView, onOpen }: Props): ReactNode {
  const theme = useTheme();
  const [toggled, setToggled] = useState<ReadonlySet<string>>(new Set());
  const [hover, setHover] = useState<Hover | null>(null);
  const [scroller, setScroller] = useState<HTMLDivElement | null>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const surface = useRef<Surface | null>(null);
  const settling = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const calls = useRef({ onView, onOpen, clock });
  calls.current = { onView, onOpen, clock };

  const few = plan.rows.reduce((sum, row) => sum + row.cores, 0) <= 32;
  const laid = useMemo(() => {
    const open = new Set(plan.rows.map((row) => row.host.host).filter((host) => few !== toggled.has(host)));
    return layout(plan, open);
  }, [plan, toggled, few]);
  const visible = useVisible(laid, scroller);

  useEffect(() => {
    if (!canvas.current || !scroller) return;
    const made = new Surface(canvas.current, scroller, {
      moved: (next) => {
        clearTimeout(settling.current);
        settling.current = setTimeout(() => {
          settling.current = undefined;
          calls.current.onView(next);
        }, SETTLED_MS);
      },
      hover: (bar, x, y, touch) => setHover(bar && { bar, x, y, touch }),
      open: (bar) => calls.current.onOpen(bar),
    }, view, () => calls.current.clock());
    surface.current = made;
    return () => {
      clearTimeout(settling.current);
      settling.current = undefined;
      made.close();
    };
  }, [scroller]);

  useEffect(() => {
    const shown = surface.current?.view;
    if (!shown || settling.current !== undefined) return; // it is being moved by hand
    if (Math.abs(shown.from - view.from) + Math.abs(shown.to - view.to) > 1000) surface.current?.go(view);
    else surface.current?.redraw();
  }, [view.from, view.to, tick, scroller]);

  const words = filter.trim().toLowerCase();
  useEffect(() => {
    surface.current?.show({
      layout: laid, inks: inks(theme, by), moved, past: plan.past,
      dim: words ? (bar) => !has(bar, words) : null,
    });
  }, [laid, theme, by, words, moved, scroller]);

  const toggle = (host: string): void => setToggled((old) => {
    const next = new Set(old);
    if (!next.delete(host)) next.add(host);
    return next;
  });

  return (
    <div className="gantt-chart" style={{ "--content": `${AXIS + laid.height}px` } as CSSProperties}>
      <div className="gantt-scroll" ref={setScroller} tabIndex={-1}>
        <div className="gantt-body">
          <div className="gantt-corner"><span>Hosts</span></div>
          {visible.map((each) => <Label key={each.row.host.host} laid={each} now={clock()} toggle={toggle} />)}
          <canvas
            ref={canvas} tabIndex={0} role="img" aria-describedby="gantt-keys"
            aria-label={`The plan: ${plan.bars.length} jobs on ${plan.rows.length} hosts.${plan.rows.some((row) => row.merged.length) ? " Jobs that ended are merged." : ""} The table below has the same.`}
          />
        </div>
      </div>
      {hover ? <HoverCard {...hover} now={clock()} close={() => setHover(null)} /> : null}
    </div>
  );
}
