/** Learning groups: what their jobs ask for and use, and what is recommended. */

import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useMemo } from "react";
import { get } from "../api/client";
import type { LearnedGroupView } from "../api/types";
import { duration, plural, size } from "../format";
import { Link, useParam } from "../router";
import { Filter } from "../ui/form";
import { Card, Command, Empty, Skeleton, Trouble } from "../ui/parts";
import { PageHead } from "../ui/sheet";
import { Group } from "./learning/group";
import "./learning/learning.css";

const MOST = 200;

export default function Learning(): ReactNode {
  const { data, error } = useQuery({ queryKey: ["learning"], queryFn: ({ signal }) => get<LearnedGroupView[]>("/learning", {}, signal) });
  const [asked, setAsked] = useParam("group");
  const [words, setWords] = useParam("q");
  const found = useMemo(
    () => (data ?? []).filter((each) => each.name.toLowerCase().includes(words.toLowerCase())).sort((a, b) => b.observations - a.observations || a.name.localeCompare(b.name)),
    [data, words],
  );
  if (error && !data) return <Trouble error={error} />;
  if (!data) return <Skeleton lines={8} />;
  if (data.length === 0)
    return (
      <>
        <PageHead title="Learning" />
        <Empty title="Nothing was learned yet" icon="learning">
          <p>Jobs of one learning group need about the same. Once some have ended, the next ones get what they need:</p>
          <Command text="rota add --learn align --mem 4G --time 1h -- ./align sample1" />
        </Empty>
      </>
    );
  const name = asked || found[0]?.name || "";
  const address = (group: string): string => `/learning?${new URLSearchParams({ ...(words ? { q: words } : {}), group }).toString()}`;
  return (
    <>
      <PageHead title="Learning" about={`${plural(data.length, "learning group")}, the most seen first`} />
      <div className="learning">
        <Card className="groups">
          <Filter label="Find a group" value={words} change={setWords} />
          <ul>
            {found.slice(0, MOST).map((each) => (
              <li key={each.name}>
                <Link to={address(each.name)} aria-current={each.name === name ? "true" : undefined}>
                  <span className="mono clip" title={each.name}>{each.name}</span>
                  <small>{plural(each.observations, "job")} · {size(each.mem_bytes)} · {duration(each.time_s)}</small>
                </Link>
              </li>
            ))}
            {found.length === 0 ? <li className="muted chart-empty">No group is called so.</li> : null}
            {found.length > MOST ? <li className="muted chart-empty">{plural(found.length - MOST, "more group")}: type a part of the name.</li> : null}
          </ul>
        </Card>
        {name ? <Group key={name} name={name} gone={() => setAsked("")} /> : null}
      </div>
    </>
  );
}
