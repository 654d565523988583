import { describe, expect, it } from "vitest";
import { deeds } from "../src/pages/job/actions";
import { classes, plain, spans, styleAfter } from "../src/pages/job/ansi";
import { found } from "../src/pages/job/find";
import { columns, layout } from "../src/pages/job/layers";
import { Rows, finds } from "../src/pages/job/rows";
import { chapters } from "../src/pages/job/story";
import { type Four, usage } from "../src/pages/job/usage";
import { endOf } from "../src/pages/job/view";

const bytes = (text: string): number => new TextEncoder().encode(text).length;
const texts = (rows: Rows): string[] => rows.rows.map((each) => each.text);

describe("output rows", () => {
  it("join pieces that end anywhere into the same text", () => {
    const whole = "first ünï line\nsecond 日本 line\r\n\nlast 🚀 without end";
    const characters = [...whole];
    for (const step of [1, 3, 7]) {
      const rows = new Rows();
      let offset = 0;
      for (let at = 0; at < characters.length; at += step) {
        const piece = characters.slice(at, at + step).join("");
        rows.append(piece, offset, offset + bytes(piece));
        offset += bytes(piece);
      }
      expect(rows.text()).toBe(whole.replace("\r", ""));
      expect(rows.next).toBe(bytes(whole));
    }
  });

  it("skip what is told twice, also in part and within text of many bytes", () => {
    const rows = new Rows();
    rows.append("añb\n", 0, 5);
    rows.append("añb\n", 0, 5);
    rows.append("ñb\n日x", 1, 9);
    expect(rows.text()).toBe("añb\n日x");
  });

  it("say where something is missing", () => {
    const rows = new Rows();
    rows.append("head\n", 0, 5);
    rows.append("tail\n", 1005, 1010);
    expect(rows.rows.map((each) => each.gap)).toEqual([0, 1000, 0]);
    expect(rows.next).toBe(1010);
  });

  it("begin with the tail and take earlier parts in front, a line that was cut becoming whole", () => {
    const rows = new Rows();
    rows.append("ond\nthird", 9, 18);
    expect(rows.prepend("first\nsec", 0)).toBe(1);
    expect(texts(rows)).toEqual(["first", "second", "third"]);
    expect(rows.first).toBe(0);
    rows.append(" goes on\n", 18, 27);
    expect(texts(rows)).toEqual(["first", "second", "third goes on"]);
  });

  it("keep only the last state of a progress bar", () => {
    const rows = new Rows();
    let offset = 0;
    for (let n = 0; n <= 100; n += 1) {
      const piece = `\r${n} %`;
      rows.append(piece, offset, offset + piece.length);
      offset += piece.length;
    }
    rows.append("\ndone\n", offset, offset + 6);
    expect(texts(rows)).toEqual(["100 %", "done"]);
  });

  it("show a line of a megabyte as many rows and copy it as one line", () => {
    const rows = new Rows();
    const line = "🚀".repeat(300_000);
    rows.append(`${line}\nnext`, 0, 1_200_005);
    expect(rows.rows.length).toBeGreaterThan(100);
    expect(rows.text()).toBe(`${line}\nnext`);
  });

  it("let the earliest rows go when there are too many, and the others keep their keys", () => {
    const rows = new Rows(100);
    for (let n = 0; n < 150; n += 1) rows.append("x\n", 2 * n, 2 * n + 2);
    expect(rows.rows.length).toBeLessThanOrEqual(100);
    expect(rows.base + rows.rows.length).toBe(150);
    expect(rows.forgot).toBe(true);
  });

  it("carry a colour on to the lines behind, until it is reset", () => {
    const rows = new Rows();
    rows.append("\u001b[31mred\nstill red\u001b[0m\nplain\n", 0, 28);
    expect(rows.rows.map((each) => classes(each.style))).toEqual(["", "ansi-2", ""]);
  });
});

it("text is found whatever its case, also where colours change within it, and after rows were put in front", () => {
  const rows = new Rows();
  rows.append("Error here\nfine\nan \u001b[31mer\u001b[1mror\u001b[0m\n", 5, 45);
  expect(finds(rows, "error")).toEqual([0, 2]);
  rows.prepend("more\n", 0);
  expect(finds(rows, "error")).toEqual([0, 2]);
  expect(finds(rows, "")).toEqual([]);
});

describe("terminal escapes", () => {
  it("become spans of one style each", () => {
    expect(spans("a\u001b[1;32mok\u001b[0m b")).toEqual([
      { text: "a", style: 0 }, { text: "ok", style: 3 | (1 << 10) }, { text: " b", style: 0 },
    ]);
  });
  it("are not shown where they move the cursor, set titles or name links", () => {
    expect(plain("\u001b[2J\u001b[Hx\u001b]0;title\u0007y\u001b]8;;http://a\u001b\\z\u001b(B")).toBe("xyz");
  });
  it("leave other control characters visible and harmless", () => {
    expect(plain("a\u0000b\u0007\tc")).toBe("a␀b␇\tc");
    expect(plain("safe\u202egnp.exe")).toBe("safe\ufffdgnp.exe");
  });
  it("know colours of 256 and of 24 bits by the nearest basic one", () => {
    expect(classes(styleAfter("\u001b[38;5;196m", 0))).toBe("ansi-2");
    expect(classes(styleAfter("\u001b[38;2;0;255;0m", 0))).toBe("ansi-3");
    expect(classes(styleAfter("\u001b[48;5;4;1m", 0))).toBe("ansi-on-5 ansi-bold");
  });
});

describe("the graph", () => {
  const nodes = (n: number): { id: number; name: string; state: string }[] =>
    Array.from({ length: n }, (_, id) => ({ id, name: "", state: "ready" }));

  it("has parents on the left and children on the right, as far as their longest way", () => {
    const edges: [number, number, string][] = [[1, 0, "ok"], [2, 1, "ok"], [2, 0, "ok"], [0, 3, "ok"], [3, 4, "ok"], [0, 4, "ok"]];
    expect(columns({ nodes: nodes(5), edges })).toEqual([0, -1, -2, 1, 2]);
  });
  it("never puts two nodes on one place", () => {
    const edges = Array.from({ length: 20 }, (_, n): [number, number, string] => (n % 2 ? [0, n + 1, "ok"] : [n + 1, 0, "ok"]));
    const places = layout({ nodes: nodes(21), edges }).nodes.map((each) => `${each.x},${each.y}`);
    expect(new Set(places).size).toBe(21);
  });
  it("ends even if jobs should wait for each other", () => {
    expect(columns({ nodes: nodes(3), edges: [[1, 0, "ok"], [2, 1, "ok"], [1, 2, "ok"]] })).toHaveLength(3);
  });
});

describe("what an attempt used", () => {
  const ended = { ended: true, much: 10 };
  const four = (used: number, more: { asked?: number; learned?: number; given?: number }): Four => ({ asked: null, learned: null, given: null, ...more, used });
  it("lacks what it was given too little of", () => {
    expect(usage(four(260, { asked: 100, given: 100 }), ended)).toMatchObject({ verdict: "lack", words: "2.6× what it was given" });
  });
  it("is no fault of a job within its walltime, however short it was expected to be", () => {
    const found = usage(four(18.5, { asked: 5, given: 60 }), { ...ended, by: "walltime" });
    expect(found).toMatchObject({ verdict: "good", words: "31 % used" });
    expect(found.marks.map(({ name }) => name)).toEqual(["asked", "walltime"]);
  });
  it("is longer than expected without being a lack, where nothing ends it", () => {
    expect(usage(four(18.5, { asked: 5, given: 5 }), { ...ended, by: "expected" })).toMatchObject({ verdict: "good", words: "3.7× as long as expected" });
  });
  it("is over-asked where much was left over, but only if somebody asked for it", () => {
    expect(usage(four(2, { asked: 100, given: 100 }), ended).verdict).toBe("over");
    expect(usage(four(2, { given: 100 }), ended).verdict).toBe("good");
    expect(usage(four(2, { asked: 8, given: 8 }), ended).verdict).toBe("good");
    expect(usage(four(0.001, { asked: 100, given: 100 }), ended).words).toBe("hardly used");
  });
  it("is judged by what the attempt was given, not by what was asked before learning", () => {
    expect(usage(four(90, { asked: 1000, learned: 100, given: 100 }), ended).verdict).toBe("good");
  });
  it("never marks as asked what nobody asked for", () => {
    expect(usage(four(1, { learned: 3, given: 4 }), ended).marks.map(({ name }) => name)).toEqual(["learned", "given"]);
  });
});

it("the story is told attempt by attempt", () => {
  const line = (attempt: number, event: string): { at: string; attempt: number; event: string; text: string } => ({ at: "", attempt, event, text: "" });
  const told = chapters([line(0, "added"), line(1, "started"), line(1, "failed"), line(2, "started")]);
  expect(told.map((each) => [each.attempt, each.lines.length])).toEqual([[0, 1], [1, 2], [2, 1]]);
});

it("only what can be undone is done without a question", () => {
  const states = ["ready", "held", "running", "lost", "failed", "cancelled", "complete", "blocked", "delayed"];
  for (const state of states) {
    for (const deed of deeds(state)) expect(deed.question !== "" || deed.undo !== null || deed.action === "retry").toBe(true);
  }
  expect(deeds("complete").map((each) => each.action)).toEqual(["remove"]);
  expect(deeds("held").map((each) => each.action)).toEqual(["release", "kill"]);
  expect(deeds("failed", true).map((each) => each.action)).toEqual(["remove"]);
});

it("a search says in how much it looked", () => {
  const reach = { from: 0, next: 2 << 20, lines: 900, forgot: false, beyond: 0, busy: false };
  expect(found(-1, 0, reach)).toBe("none in all 2M");
  expect(found(2, 17, reach)).toBe("3/17 in all 2M");
  expect(found(-1, 0, { ...reach, from: 1 << 20, busy: true })).toBe("none so far, searching…");
  expect(found(-1, 0, { ...reach, from: 1 << 20 })).toBe("none in the last 1M of 2M");
  expect(found(-1, 4, { ...reach, beyond: 12 })).toBe("4 in all 2M; 12 more before what the page holds");
  expect(found(-1, 0, { ...reach, forgot: true })).toBe("none in the last 900 lines");
});

it("the cause of an end comes before how the process ended", () => {
  const end = (code: string, message: string, signal: string | null, exit_code: number | null = null): object =>
    endOf({ reason: { code, message }, signal, exit_code });
  expect(end("kill_requested", "killed by ann", "TERM")).toEqual({ cause: "killed by ann", how: "signal TERM" });
  expect(end("walltime", "ran longer than 2s", "TERM")).toEqual({ cause: "ran longer than 2s", how: "signal TERM" });
  expect(end("signal", "signal SEGV", "SEGV")).toEqual({ cause: "", how: "signal SEGV" });
  expect(end("exit", "exit 3", null, 3)).toEqual({ cause: "", how: "exit 3" });
});

it("only an administrator can say that a lost job is dead", () => {
  expect(deeds("lost", false, false).map((each) => each.action)).toEqual(["kill"]);
});
