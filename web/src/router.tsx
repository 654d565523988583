/** Addresses: every view and filter has one, so that it can be shared, bookmarked and reached with the back button. */

import {
  type AnchorHTMLAttributes,
  type MouseEvent,
  type ReactNode,
  createContext,
  useCallback,
  useContext,
  useMemo,
  useSyncExternalStore,
} from "react";

const CHANGED = "rota:address";

function subscribe(changed: () => void): () => void {
  window.addEventListener("popstate", changed);
  window.addEventListener(CHANGED, changed);
  return () => {
    window.removeEventListener("popstate", changed);
    window.removeEventListener(CHANGED, changed);
  };
}

const here = (): string => window.location.pathname + window.location.search;

export function go(to: string, { replace = false }: { replace?: boolean } = {}): void {
  if (to === here()) return;
  if (replace) window.history.replaceState(null, "", to);
  else {
    window.history.pushState(null, "", to);
    window.scrollTo(0, 0);
  }
  window.dispatchEvent(new Event(CHANGED));
}

export interface Address {
  path: string;
  query: URLSearchParams;
}

export function useAddress(): Address {
  const text = useSyncExternalStore(subscribe, here);
  return useMemo(() => {
    const [path, query] = text.split("?");
    return { path: path || "/", query: new URLSearchParams(query ?? "") };
  }, [text]);
}

/** One parameter of the address, and how to set it; its default is not written. */
export function useParam(name: string, fallback = ""): [string, (value: string) => void] {
  const { path, query } = useAddress();
  const value = query.get(name) ?? fallback;
  const set = useCallback(
    (next: string) => {
      const words = new URLSearchParams(window.location.search);
      if (next === fallback) words.delete(name);
      else words.set(name, next);
      const text = words.toString();
      go(path + (text ? `?${text}` : ""), { replace: true });
    },
    [name, fallback, path],
  );
  return [value, set];
}

type LinkProps = AnchorHTMLAttributes<HTMLAnchorElement> & { to: string; children: ReactNode };

export function Link({ to, onClick, children, ...rest }: LinkProps): ReactNode {
  const click = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a href={to} onClick={click} {...rest}>
      {children}
    </a>
  );
}

const Params = createContext<Record<string, string>>({});
export const usePlace = (): Record<string, string> => useContext(Params);

/** The parameters of a path that matches a pattern such as /jobs/:id, or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/").filter(Boolean);
  const found = path.split("/").filter(Boolean);
  if (wanted.length !== found.length) return null;
  const words: Record<string, string> = {};
  for (const [at, word] of wanted.entries()) {
    const text = found[at] ?? "";
    if (word.startsWith(":")) {
      try {
        words[word.slice(1)] = decodeURIComponent(text);
      } catch {
        return null;
      }
    } else if (word !== text) return null;
  }
  return words;
}

export function Routes({ routes, otherwise }: { routes: [string, () => ReactNode][]; otherwise: ReactNode }): ReactNode {
  const { path } = useAddress();
  for (const [pattern, Page] of routes) {
    const words = match(pattern, path);
    if (words)
      return (
        <Params.Provider value={words}>
          <Page />
        </Params.Provider>
      );
  }
  return otherwise;
}
