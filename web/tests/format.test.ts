import { expect, it } from "vitest";
import { brief } from "../src/format";

it("a command in a row is short: scripts by their names, other text by its first line", () => {
  const python = ["/bin/sh", "-c", 'text=$1; shift; exec "$@" 9<<END\n$text\nEND\n', "job.py", "#!/usr/bin/python3\nx", "/usr/bin/python3", "/dev/fd/9", "a", "b"];
  expect(brief(python)).toBe("script job.py a b");
  expect(brief(["/bin/bash", "-e", "-c", "#!/bin/bash -e\nmake", "job.sh", "x"])).toBe("script job.sh x");
  expect(brief(["/bin/sh", "-c", "a\nb", "job.sh"])).toBe("script job.sh");
  expect(brief(["python3", "-c", "import x\nx.run()", "y"])).toBe("python3 -c import x … y");
  expect(brief("# about\nset -e\nmake\n")).toBe("set -e …");
  expect(brief("echo  a")).toBe("echo  a");
});
