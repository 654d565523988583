/** Changes the parameters of fair share. An empty field means the default. */

import { type ReactNode, useState } from "react";
import type { FairShareView } from "../../api/types";
import { TextField } from "../../ui/form";
import type { Wanted } from "./change";
import { Editor } from "./editor";
import { news, seconds, time, weight } from "./words";

export function FairShareDialog({ fair, base, close }: { fair: FairShareView; base: number; close: () => void }): ReactNode {
  const before = {
    project: fair.project === null ? "" : String(fair.project), used: String(fair.used), asked: String(fair.asked),
    "half-life": time(fair.half_life_s), window: time(fair.window_s),
  };
  const [project, setProject] = useState(before.project);
  const [used, setUsed] = useState(before.used);
  const [asked, setAsked] = useState(before.asked);
  const [halfLife, setHalfLife] = useState(before["half-life"]);
  const [window, setWindow] = useState(before.window);

  const make = (): Wanted => {
    const given = {
      project: weight("Project", project), used: weight("Used", used), asked: weight("Asked", asked),
      half_life_s: seconds("Half-life", halfLife), window_s: seconds("Window", window),
    };
    const value = Object.fromEntries(Object.entries(given).filter(([, each]) => each !== null));
    const said = `fair share: ${news(before, { project, used, asked, "half-life": halfLife, window })}`;
    return { changes: [{ kind: "setting", name: "fair_share", value: Object.keys(value).length ? value : null }], base, said };
  };
  return (
    <Editor title="Fair share" close={close} make={make} wide>
      <p className="muted explain">How much each counts in the karma of a user; 0 is not at all. Jobs that wait are planned anew.</p>
      <div className="fields">
        <TextField label="Project" inputMode="decimal" placeholder="by shares" value={project} change={setProject} hint="What the project used. Empty: 1 where projects have shares." />
        <TextField label="Used" inputMode="decimal" placeholder="1" value={used} change={setUsed} hint="What the user used." />
        <TextField label="Asked" inputMode="decimal" placeholder="1" value={asked} change={setAsked} hint="What the user asked for." />
      </div>
      <div className="fields two">
        <TextField label="Half-life" placeholder="7d" value={halfLife} change={setHalfLife} hint="After this, use counts half." />
        <TextField label="Window" placeholder="none" value={window} change={setWindow} hint="Older use does not count at all, such as 60d." />
      </div>
    </Editor>
  );
}
