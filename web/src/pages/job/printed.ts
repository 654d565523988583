/** The output of an attempt as a store for the page: the end of the kept output, and live output while it runs. */

import { ApiError, address, get } from "../../api/client";
import type { OutputView } from "../../api/types";
import { Rows, finds } from "./rows";

export type StreamName = "out" | "err";
export type Stage = "loading" | "live" | "reconnecting" | "kept" | "failed";

export interface Chunk {
  attempt: number;
  stream: StreamName;
  offset: number;
  next: number;
  text: string;
}

const TAIL = 64 * 1024;
const EARLIER = 512 * 1024;
/** Rows appear at most this often, however fast a job prints. */
const EVERY_MS = 60;
const STREAMS: readonly StreamName[] = ["out", "err"];

function textOf(view: OutputView): string {
  if (view.data === null) return view.text ?? "";
  const bytes = Uint8Array.from(atob(view.data), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}

export class Printed {
  readonly rows: Record<StreamName, Rows> = { out: new Rows(), err: new Rows() };
  readonly written: Record<StreamName, number | null> = { out: null, err: null };
  readonly binary: Record<StreamName, boolean> = { out: false, err: false };
  stage: Stage = "loading";
  error: Error | null = null;
  private live = false;
  private version = 0;
  private readonly watchers = new Set<() => void>();
  private source: EventSource | null = null;
  private again: ReturnType<typeof setTimeout> | undefined;
  private due: ReturnType<typeof setTimeout> | undefined;
  private quit = new AbortController();

  constructor(
    private readonly job: number,
    private readonly attempt: number,
  ) {}

  watch = (changed: () => void): (() => void) => {
    this.watchers.add(changed);
    return () => this.watchers.delete(changed);
  };
  now = (): number => this.version;

  open(): void {
    if (this.quit.signal.aborted) this.quit = new AbortController();
    document.addEventListener("visibilitychange", this.seen);
  }

  /** Follow the live output while the attempt runs; otherwise read the kept output. */
  follow(live: boolean): void {
    this.live = live;
    if (live) this.seen();
    else {
      this.hush();
      void this.settle();
    }
  }

  /** A hidden page releases its connection: a browser has few per host, for all tabs together. */
  private readonly seen = (): void => {
    if (!this.live) return;
    if (document.hidden) this.hush();
    else if (!this.source) this.listen();
  };

  close(): void {
    document.removeEventListener("visibilitychange", this.seen);
    this.hush();
    clearTimeout(this.due);
    this.quit.abort();
  }

  /** Load the part before the loaded rows. Returns the number of new rows. */
  async earlier(stream: StreamName): Promise<number> {
    const rows = this.rows[stream];
    const before = rows.first;
    const view = await this.read(stream, { tail: Math.min(EARLIER, before), before });
    if (this.rows[stream] !== rows || rows.first !== before) return 0;
    const added = rows.prepend(textOf(view), view.offset);
    this.changed();
    return added;
  }

  /** Count the rows before an offset that contain a text; also returns the start of the searched part. Keeps no rows. */
  async glance(stream: StreamName, before: number, text: string): Promise<{ hits: number; from: number }> {
    const view = await this.read(stream, { tail: Math.min(EARLIER, before), before });
    const rows = new Rows();
    rows.append(textOf(view), view.offset, view.next);
    return { hits: finds(rows, text).length, from: view.offset };
  }

  private listen(): void {
    const { out, err } = this.rows;
    const last = out.next || err.next ? `${this.attempt}-${out.next}-${err.next}` : "";
    const source = new EventSource(address(`/jobs/${this.job}/output/live`, { last }));
    this.source = source;
    source.onopen = () => this.become("live");
    source.onerror = () => {
      this.become("reconnecting");
      // A browser stops reconnecting after an answer that is no stream, such as 503 while the manager restarts.
      if (source.readyState === EventSource.CLOSED) void this.refused();
    };
    source.addEventListener("chunk", (event) => this.take(JSON.parse((event as MessageEvent<string>).data) as Chunk));
    source.addEventListener("end", () => {
      this.live = false;
      this.hush();
      void this.settle();
    });
  }

  /** A stream does not say why it was refused; a plain request for the same output does. */
  private async refused(): Promise<void> {
    try {
      await this.read("out", { tail: 1 });
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) {
        this.live = false;
        this.hush();
        this.error = error;
        this.become("failed");
        return;
      }
    }
    if (this.quit.signal.aborted || !this.live) return;
    clearTimeout(this.again);
    this.again = setTimeout(() => this.listen(), 2000);
  }

  private take(chunk: Chunk): void {
    if (chunk.attempt !== this.attempt) return;
    this.rows[chunk.stream].append(chunk.text, chunk.offset, chunk.next);
    this.due ??= setTimeout(() => {
      this.due = undefined;
      this.changed();
    }, EVERY_MS);
  }

  /**
   * The attempt has ended. The kept output may differ from the live one: progress bars are reduced to their last
   * state, and very long outputs lose their middle. Then it is read again.
   */
  private async settle(): Promise<void> {
    const { signal } = this.quit;
    try {
      for (const stream of STREAMS) {
        const view = await this.read(stream, { tail: TAIL });
        if (!view.done) continue; // it has not ended after all
        this.written[stream] = view.written;
        this.binary[stream] = view.data !== null;
        const here = this.rows[stream];
        if (view.kept === here.next && here.next > 0 && !here.forgot) continue;
        const rows = new Rows();
        rows.append(textOf(view), view.offset, view.next);
        rows.first = view.offset;
        this.rows[stream] = rows;
      }
      this.become("kept");
    } catch (error) {
      if (signal.aborted) return;
      this.error = error as Error;
      // There is no output: the attempt never began, or its output was pruned. This is no error.
      this.become(error instanceof ApiError && error.status === 404 ? "kept" : "failed");
    }
  }

  private read(stream: StreamName, more: { tail: number; before?: number }): Promise<OutputView> {
    return get<OutputView>(`/jobs/${this.job}/output`, { stream, attempt: this.attempt, ...more }, this.quit.signal);
  }

  private hush(): void {
    clearTimeout(this.again);
    this.source?.close();
    this.source = null;
  }

  private become(stage: Stage): void {
    this.stage = stage;
    this.changed();
  }

  private changed(): void {
    this.version += 1;
    for (const each of this.watchers) each();
  }
}
