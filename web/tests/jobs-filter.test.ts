import { describe, expect, it } from "vitest";
import { addressOf, filterOf, filtered, reach, selectors, sortOf, sorted } from "../src/pages/jobs/filter";

const of = (text: string) => filterOf(new URLSearchParams(text));

describe("a filter", () => {
  it("asks for everything when the address says nothing", () => {
    expect(selectors(of(""))).toEqual([]);
    expect(filtered(of(""))).toBe(false);
  });
  it("joins states by OR and the rest by AND", () =>
    expect(selectors(of("state=failed,lost&group=a/b&user=ann&host=n1"))).toEqual([
      "state=lost,@a/b,user=ann,host=n1", "state=failed,@a/b,user=ann,host=n1",
    ]));
  it("is one word without a state", () => expect(selectors(of("group=x&host=n1"))).toEqual(["@x,host=n1"]));
  it("forgets states that do not exist", () => expect(of("state=failed,nonsense").states).toEqual(["failed"]));
  it("is a filter when it only searches", () => expect(filtered(of("q=blast"))).toBe(true));
  it("takes selectors out of the search box", () => {
    const filter = of("q=" + encodeURIComponent("big exit=1-3 file @part* older=1d state=failed") + "&host=n1");
    expect(selectors(filter)).toEqual(["state=failed,host=n1,exit=1-3,@part*,older=1d"]);
    expect(filter.search).toBe("big file");
    expect(filter.typed).toBe("big exit=1-3 file @part* older=1d state=failed");
  });
  it("searches for text that only looks like a selector", () => {
    expect(selectors(of("q=" + encodeURIComponent("--name=x  a=b exit= state=odd")))).toEqual([]);
    expect(of("q=a++b").search).toBe("a  b");
  });
  it("names a group that ends with an asterisk", () => expect(selectors(of("group=a*"))).toEqual(["@a\\*"]));
  it("makes addresses that it reads again", () => {
    const address = addressOf({ group: "a b/&=c", state: "failed", user: "" });
    expect(address).not.toContain("user");
    expect(of(address.split("?")[1] ?? "").group).toBe("a b/&=c");
  });
});

describe("an order", () => {
  it("is the newest first when the address says nothing or nonsense", () => {
    expect(sortOf(new URLSearchParams(""))).toBe("-id");
    expect(sortOf(new URLSearchParams("sort=-nonsense"))).toBe("-id");
  });
  it("is the one of the address", () => expect(sortOf(new URLSearchParams("sort=wall"))).toBe("wall"));
  it("turns round at the second click", () => {
    expect(sorted("-id", "mem")).toBe("-mem");
    expect(sorted("-mem", "mem")).toBe("mem");
    expect(sorted("mem", "mem")).toBe("-mem");
  });
});

describe("how far one can scroll", () => {
  it("is to the end in the order of ids", () => expect(reach("-id", 1_000_000)).toBe(1_000_000));
  it("is as far as the manager sorts in another order", () => {
    expect(reach("-ended", 1_000_000)).toBe(10_000);
    expect(reach("wall", 12)).toBe(12);
  });
});
