/** The dependency graph of any jobs: of a group, or of what selectors name. */

import { type FormEvent, type ReactNode, useState } from "react";
import { Link, useParam } from "../router";
import { Button, Command, Empty } from "../ui/parts";
import { PageHead } from "../ui/sheet";
import { useTitle } from "../frame";
import { Icon } from "../ui/icons";
import { GraphCard } from "./graph/card";
import "../ui/form.css";
import "./graph/graph.css";

export default function Page(): ReactNode {
  const [select, setSelect] = useParam("select");
  const [typed, setTyped] = useState<string | null>(null);
  useTitle(select ? `${select} · Dependencies` : "Dependencies");
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    setSelect((typed ?? select).trim());
    setTyped(null);
  };
  // A comma joins conditions, and a space is between alternatives; behind a backslash it is part of a name.
  const words = select.startsWith("@") ? [select] : select.split(/\s+/).filter(Boolean);
  return (
    <div className="graph-page">
      <Link to="/groups" className="machine-back pipeline-back"><Icon name="left" size={14} />Groups</Link>
      <PageHead title="Dependencies" about="What waits for what, what takes longest, and how much is left">
        <form className="graph-select" onSubmit={submit}>
          <span className="filter">
            <Icon name="search" size={14} />
            <input className="input" type="search" aria-label="Selectors" placeholder="@group, 12-40, user=ada" maxLength={1000} spellCheck={false}
              value={typed ?? select} onChange={(event) => setTyped(event.target.value)} />
          </span>
          <Button type="submit">Show</Button>
        </form>
      </PageHead>
      {select ? (
        <GraphCard key={select} title={select} path="/layers" query={{ select: words }} name={["jobs", select]} what="job"
          alone={<Empty title="There are no such jobs" icon="search">Selectors are as on the command line: <Command text={`rota jobs ${select}`} /></Empty>} />
      ) : (
        <Empty title="Whose dependencies?" icon="dependent">Name a group, such as @analysis, or other selectors. <Link to="/groups">See all groups</Link></Empty>
      )}
    </div>
  );
}
