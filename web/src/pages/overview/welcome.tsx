/** Shown to newcomers: useful first commands, in order. */

import type { ReactNode } from "react";
import type { ManagerView } from "../../api/types";
import { count, size } from "../../format";
import { Command } from "../../ui/parts";

const STEPS: [title: string, text: string, command: string][] = [
  ["Add a job", "Any command, after two dashes. It is kept until it has run.", "rota add -- sleep 10"],
  ["Add many at once", "One command a line, from a file or a pipe. Adding the file again goes on where it stopped.", "seq 100 | sed 's/^/sleep /' | rota add -g first -"],
  ["Watch them", "This page follows by itself. In a terminal:", "rota status --watch"],
  ["Ask why", "A job that waits can always say for what.", "rota why 1"],
];

export function Welcome({ manager }: { manager: ManagerView | undefined }): ReactNode {
  const runners = manager?.runners.filter((each) => each.connected) ?? [];
  const cores = runners.reduce((sum, each) => sum + each.cores, 0);
  const mem = runners.reduce((sum, each) => sum + each.mem_bytes, 0);
  return (
    <section className="ov-welcome">
      <img src="/icon.svg" width={56} height={56} alt="" />
      <h1>Ready for your first job</h1>
      <p className="muted">
        {cores ? `${count(cores)} cores and ${size(mem)} of memory wait for something to do.` : "The manager runs. A machine is about to connect."}
      </p>
      <ol>
        {STEPS.map(([title, text, command], at) => (
          <li key={title} className="card">
            <span className="ov-step num">{at + 1}</span>
            <div>
              <h2>{title}</h2>
              <p className="muted">{text}</p>
              <Command text={command} />
            </div>
          </li>
        ))}
      </ol>
    </section>
  );
}
