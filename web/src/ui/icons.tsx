/** Icons, drawn on a grid of 24 with one stroke. They say nothing that the text beside them does not. */

import type { ReactNode } from "react";

const PATHS = {
  overview: "M4 13h6V4H4zM14 20h6v-9h-6zM4 20h6v-4H4zM14 8h6V4h-6z",
  jobs: "M8 6h13M8 12h13M8 18h13M3.5 6h.01M3.5 12h.01M3.5 18h.01",
  groups: "M3 7a2 2 0 0 1 2-2h4l2 2h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z",
  pipelines: "M3 8h4v8H3zM10 8h4v8h-4zM17 8h4v8h-4zM7 12h3M14 12h3",
  gantt: "M4 5h9M8 10h10M6 15h7M11 20h9",
  machines: "M4 4h16v6H4zM4 14h16v6H4zM8 7h.01M8 17h.01",
  limits: "M12 3v3M12 12l4-4M5 19a9 9 0 1 1 14 0",
  learning: "M4 19l5-6 4 3 7-9M4 4v15h16",
  accounting: "M5 20V10M12 20V4M19 20v-7",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM20 20l-4-4",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4",
  moon: "M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5z",
  running: "M8 5v14l11-7z",
  ready: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM12 7v5l3 2",
  complete: "M5 12.5l4.5 4.5L19 7.5",
  failed: "M6 6l12 12M18 6L6 18",
  cancelled: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM6 6l12 12",
  held: "M9 5v14M15 5v14",
  odd: "M12 8v5M12 16.5h.01M10.3 3.9L2.7 17a2 2 0 0 0 1.7 3h15.2a2 2 0 0 0 1.7-3L13.7 3.9a2 2 0 0 0-3.4 0z",
  dependent: "M6 4v8a4 4 0 0 0 4 4h8M15 13l3 3-3 3",
  retry: "M20 11a8 8 0 1 0-2.3 5.7M20 5v6h-6",
  reset: "M8 5L4 9l4 4M4 9h10a5 5 0 0 1 0 10H9",
  trash: "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  down: "M5 9l7 7 7-7",
  skip: "M5 6l6 6-6 6M13 6l6 6-6 6",
  close: "M6 6l12 12M18 6L6 18",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  logout: "M9 20H5V4h4M16 16l4-4-4-4M20 12H9",
  help: "M12 21a9 9 0 1 0 0-18 9 9 0 0 0 0 18zM9.5 9.5a2.5 2.5 0 1 1 3.5 2.3c-.7.3-1 .8-1 1.7M12 17h.01",
  plus: "M12 5v14M5 12h14",
  edit: "M4 20h4L19 9l-4-4L4 16z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }): ReactNode {
  return (
    <svg
      width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth={1.9}
      strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

export const STATE_ICONS: Record<string, IconName> = {
  running: "running", starting: "running", finishing: "running", scheduled: "running", suspended: "held", lost: "odd",
  ready: "ready", delayed: "ready", dependent: "dependent", held: "held", blocked: "odd", failed: "failed",
  cancelled: "cancelled", complete: "complete",
  waiting: "ready", ok: "complete", skipped: "skip", terminated: "cancelled", paused: "held", asking: "help", ended: "complete",
};
