/** The canvas and its input: wheel, drag, pinch and keys move the window of time. It draws at most once a frame. */

import { AXIS, type Layout, hit } from "./layout";
import type { Bar } from "./model";
import { type Scene, paint } from "./paint";
import { type Window, pan, zoom } from "./scale";

export interface Listener {
  moved: (view: Window) => void; //: by hand
  hover: (bar: Bar | null, x: number, y: number, touch: boolean) => void;
  open: (bar: Bar) => void;
}

export type Look = Omit<Scene, "view" | "width" | "height" | "scroll" | "now" | "hover">;

/** Is there anything to open? */
const leads = (bar: Bar): boolean => bar.kind !== "ghost" && bar.kind !== "state";

const SLOP = 5;
const EMPTY: Layout = { rows: [], height: 0 };

export class Surface {
  view: Window;
  private look: Look | null = null;
  private width = 1;
  private height = 1;
  private frame = 0;
  private hovered: Bar | null = null;
  private readonly fingers = new Map<number, { x: number; y: number }>();
  private dragged = false;
  private readonly ends: (() => void)[] = [];

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly scroller: HTMLElement,
    private readonly listener: Listener,
    view: Window,
    private readonly clock: () => number,
  ) {
    this.view = view;
    const on = <E extends Event>(target: EventTarget, name: string, does: (event: E) => void, passive = true): void => {
      target.addEventListener(name, does as EventListener, { passive });
      this.ends.push(() => target.removeEventListener(name, does as EventListener));
    };
    on(scroller, "scroll", () => this.redraw());
    on<WheelEvent>(canvas, "wheel", (event) => this.wheel(event), false);
    on<PointerEvent>(canvas, "pointerdown", (event) => this.down(event));
    on<PointerEvent>(canvas, "pointermove", (event) => this.move(event));
    on<PointerEvent>(canvas, "pointerup", (event) => this.up(event));
    on<PointerEvent>(canvas, "pointercancel", (event) => this.fingers.delete(event.pointerId));
    on<PointerEvent>(canvas, "pointerleave", (event) => { if (event.pointerType === "mouse") this.point(null, 0, 0, false); });
    on<KeyboardEvent>(canvas, "keydown", (event) => this.key(event), false);
    const watch = new ResizeObserver(() => this.resize());
    watch.observe(canvas);
    this.ends.push(() => watch.disconnect());
    this.resize();
  }

  close(): void {
    cancelAnimationFrame(this.frame);
    for (const end of this.ends) end();
  }

  show(look: Look): void {
    this.look = look;
    this.redraw();
  }

  /** Show another window of time. */
  go(view: Window): void {
    this.view = view;
    this.redraw();
  }

  redraw(): void {
    this.frame ||= requestAnimationFrame(() => {
      this.frame = 0;
      this.draw();
    });
  }

  draw(): void {
    const pen = this.canvas.getContext("2d", { alpha: false });
    if (!pen || !this.look) return;
    const ratio = this.canvas.width / this.width;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(pen, {
      ...this.look, view: this.view, width: this.width, height: this.height, scroll: this.scroller.scrollTop, now: this.clock(),
      hover: this.hovered,
    });
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = Math.min(window.devicePixelRatio || 1, 2);
    this.width = Math.max(1, clientWidth);
    this.height = Math.max(1, clientHeight);
    this.canvas.width = Math.round(this.width * ratio);
    this.canvas.height = Math.round(this.height * ratio);
    this.draw();
  }

  private hand(view: Window): void {
    this.go(view);
    this.listener.moved(view);
  }

  private perPixel(): number {
    return (this.view.to - this.view.from) / this.width;
  }

  private wheel(event: WheelEvent): void {
    const onAxis = event.offsetY < AXIS;
    const fits = this.scroller.scrollHeight <= this.scroller.clientHeight + 1;
    const sideways = event.shiftKey ? event.deltaY || event.deltaX : Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : 0;
    if (sideways) this.hand(pan(this.view, sideways * this.perPixel()));
    else if (event.ctrlKey || event.metaKey || onAxis || fits) {
      const strength = event.ctrlKey ? 0.008 : 0.0016;
      this.hand(zoom(this.view, Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * strength), this.view.from + event.offsetX * this.perPixel()));
    } else return; // the rows scroll
    event.preventDefault();
  }

  private down(event: PointerEvent): void {
    if (event.button !== 0) return;
    this.fingers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (this.fingers.size === 1) this.dragged = false;
    else this.dragged = true;
  }

  private move(event: PointerEvent): void {
    if (event.pointerType === "mouse" && event.buttons === 0) this.fingers.delete(event.pointerId); // the button was released outside
    const before = this.fingers.get(event.pointerId);
    if (!before) {
      if (event.pointerType === "mouse") this.point(this.at(event.offsetX, event.offsetY), event.clientX, event.clientY, false);
      return;
    }
    const here = { x: event.offsetX, y: event.offsetY };
    const other = [...this.fingers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const apart = Math.max(20, Math.abs(here.x - other.x));
      const middle = this.view.from + ((here.x + other.x) / 2) * this.perPixel();
      this.hand(zoom(this.view, Math.max(20, Math.abs(before.x - other.x)) / apart, middle));
    } else {
      if (!this.dragged && Math.hypot(here.x - before.x, here.y - before.y) < SLOP) return;
      if (!this.dragged) {
        this.dragged = true;
        this.canvas.setPointerCapture(event.pointerId);
        this.point(null, 0, 0, false);
      }
      this.hand(pan(this.view, (before.x - here.x) * this.perPixel()));
      if (event.pointerType === "mouse") this.scroller.scrollTop += before.y - here.y;
    }
    this.fingers.set(event.pointerId, here);
  }

  private up(event: PointerEvent): void {
    const was = this.fingers.delete(event.pointerId);
    if (!was || this.dragged) return;
    const bar = this.at(event.offsetX, event.offsetY);
    if (event.pointerType === "mouse") {
      if (bar && leads(bar)) this.listener.open(bar);
    } else this.point(bar, event.clientX, event.clientY, true);
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const span = this.view.to - this.view.from;
    const middle = (this.view.from + this.view.to) / 2;
    if (event.key === "ArrowLeft") this.hand(pan(this.view, -span / 10));
    else if (event.key === "ArrowRight") this.hand(pan(this.view, span / 10));
    else if (event.key === "+" || event.key === "=") this.hand(zoom(this.view, 1 / 1.3, middle));
    else if (event.key === "-") this.hand(zoom(this.view, 1.3, middle));
    else if (event.key === "ArrowDown") this.scroller.scrollTop += 52;
    else if (event.key === "ArrowUp") this.scroller.scrollTop -= 52;
    else if (event.key === "PageDown") this.scroller.scrollTop += this.height - AXIS;
    else if (event.key === "PageUp") this.scroller.scrollTop -= this.height - AXIS;
    else return;
    event.preventDefault();
  }

  private at(x: number, y: number): Bar | null {
    if (y < AXIS) return null;
    return hit(this.look?.layout ?? EMPTY, this.view, this.width, x, y - AXIS + this.scroller.scrollTop)?.bar ?? null;
  }

  private point(bar: Bar | null, x: number, y: number, touch: boolean): void {
    this.canvas.style.cursor = bar && leads(bar) ? "pointer" : "grab";
    if (bar !== this.hovered) this.redraw();
    if (bar || this.hovered) this.listener.hover(bar, x, y, touch);
    this.hovered = bar;
  }
}
