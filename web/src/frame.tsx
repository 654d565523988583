/** The frame around every page: navigation, connection state and keyboard shortcuts. */

import { type ReactNode, useEffect, useRef, useState } from "react";
import { useLink } from "./live";
import { Link, go, useAddress } from "./router";
import { leave, useSession } from "./session";
import { Strip } from "./strip";
import { choose, useTheme } from "./theme";
import { Icon, type IconName } from "./ui/icons";
import { Keys } from "./ui/keys";
import "./frame.css";

const PLACES: { to: string; name: string; icon: IconName; key: string }[] = [
  { to: "/", name: "Overview", icon: "overview", key: "o" },
  { to: "/jobs", name: "Jobs", icon: "jobs", key: "j" },
  { to: "/groups", name: "Groups", icon: "groups", key: "r" },
  { to: "/pipelines", name: "Pipelines", icon: "pipelines", key: "i" },
  { to: "/gantt", name: "Gantt", icon: "gantt", key: "g" },
  { to: "/machines", name: "Machines", icon: "machines", key: "m" },
  { to: "/policy", name: "Policy", icon: "limits", key: "p" },
  { to: "/learning", name: "Learning", icon: "learning", key: "l" },
  { to: "/accounting", name: "Accounting", icon: "accounting", key: "a" },
];
const LINK = { live: "Live", connecting: "Connecting…", lost: "Reconnecting…" } as const;

export function typing(event: KeyboardEvent): boolean {
  const at = event.target as HTMLElement | null;
  return !!at && (at.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName));
}

/** Sets the window title; empty: another component sets it. */
export function useTitle(name: string): void {
  useEffect(() => {
    if (name) document.title = `${name} · Rota`;
  }, [name]);
}

export function Frame({ children }: { children: ReactNode }): ReactNode {
  const { path } = useAddress();
  const link = useLink();
  const theme = useTheme();
  const session = useSession();
  const [help, setHelp] = useState(false);
  const search = useRef<HTMLInputElement>(null);
  const going = useRef(0);

  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key === "k" && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        search.current?.focus();
        return;
      }
      if (typing(event) || event.metaKey || event.ctrlKey || event.altKey) return;
      const after = Date.now() - going.current < 1200;
      going.current = 0;
      const place = PLACES.find((each) => each.key === event.key);
      if (after && place) {
        event.preventDefault();
        go(place.to);
      } else if (event.key === "g") going.current = Date.now();
      else if (event.key === "/") {
        event.preventDefault();
        search.current?.focus();
      } else if (event.key === "?") setHelp(true);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);

  const current = PLACES.filter((each) => each.to === "/" ? path === "/" : path.startsWith(each.to)).at(-1);
  // A page below a section, such as one job, sets its own title.
  const own = PLACES.find((each) => each.to === path);
  useTitle(own?.name ?? "");

  return (
    <div className="frame">
      <a className="skip" href="#main">Skip to the page</a>
      <nav className="rail" aria-label="Pages">
        <Link to="/" className="brand" aria-label="Rota, overview">
          <img src="/icon.svg" width={26} height={26} alt="" />
          <b>Rota</b>
        </Link>
        <ul>
          {PLACES.map((each) => (
            <li key={each.to}>
              <Link to={each.to} aria-current={each === current ? "page" : undefined} title={`${each.name} (g ${each.key})`}>
                <Icon name={each.icon} size={18} />
                <span>{each.name}</span>
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <header className="bar">
        <form
          role="search"
          aria-label="Jobs"
          onSubmit={(event) => {
            event.preventDefault();
            const words = search.current?.value.trim() ?? "";
            go(/^\d+(_\d+)?$/.test(words) ? `/jobs/${words}` : `/jobs${words ? `?q=${encodeURIComponent(words)}` : ""}`);
            event.currentTarget.reset();
            search.current?.blur();
          }}
        >
          <Icon name="search" />
          <input ref={search} type="search" placeholder="Search jobs, or an id" aria-label="Search jobs" maxLength={200} />
          <kbd>/</kbd>
          <kbd className="enter">Enter</kbd>
        </form>
        <span className={`link ${link}`} role="status">
          <i />
          <span>{LINK[link]}</span>
        </span>
        <button type="button" className="round" onClick={() => choose(theme === "dark" ? "light" : "dark")}
          aria-label={theme === "dark" ? "Light colours" : "Dark colours"}>
          <Icon name={theme === "dark" ? "sun" : "moon"} />
        </button>
        <button type="button" className="round keys-button" onClick={() => setHelp(true)} aria-label="Keys">
          <Icon name="help" />
        </button>
        <span className="who" title={`${session.user} (${session.role}), Rota ${session.version}`}>
          <span className="clip">{session.user}</span>
          <small>{session.role}</small>
        </span>
        <button type="button" className="round" onClick={() => void leave()} aria-label="Log out">
          <Icon name="logout" />
        </button>
      </header>
      <main id="main" tabIndex={-1}>
        <Strip />
        {children}
      </main>
      {help ? <Keys places={PLACES} close={() => setHelp(false)} /> : null}
    </div>
  );
}
