/** The whole page: session, event stream, frame, and which page is in it. */

import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, lazy, Suspense, useEffect } from "react";
import { ApiError } from "./api/client";
import { Frame, useTitle } from "./frame";
import { follow, live } from "./live";
import { Link, Routes, match } from "./router";
import { WithSession } from "./session";
import { Empty, Skeleton } from "./ui/parts";
import { Toasts } from "./ui/toasts";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: Infinity, // the event stream says when to refetch
      refetchOnWindowFocus: false,
      retry: (failures, error) => failures < 2 && !(error instanceof ApiError && error.status >= 400 && error.status < 500),
    },
  },
});

const PAGES: [pattern: string, load: () => Promise<{ default: () => ReactNode }>][] = [
  ["/", () => import("./pages/overview")],
  ["/jobs", () => import("./pages/jobs")],
  ["/jobs/:id", () => import("./pages/job")],
  ["/groups", () => import("./pages/groups")],
  ["/pipelines", () => import("./pages/pipelines")],
  ["/pipelines/:session", () => import("./pages/pipeline")],
  ["/graph", () => import("./pages/graph")],
  ["/gantt", () => import("./pages/gantt")],
  ["/machines", () => import("./pages/machines")],
  ["/machines/:host", () => import("./pages/machine")],
  ["/policy", () => import("./pages/policy")],
  ["/learning", () => import("./pages/learning")],
  ["/accounting", () => import("./pages/accounting")],
];
// Load the code of the page while the session is still being checked.
void PAGES.find(([pattern]) => match(pattern, window.location.pathname))?.[1]();

const ROUTES = PAGES.map(([pattern, load]): [string, () => ReactNode] => {
  const Page = lazy(load);
  return [pattern, () => <Page />];
});

function NoPage(): ReactNode {
  useTitle("No such page");
  return (
    <>
      <h1 className="hidden">No such page</h1>
      <Empty title="There is no such page" icon="odd">The address may be mistyped. <Link to="/">See the overview</Link></Empty>
    </>
  );
}

function Live({ children }: { children: ReactNode }): ReactNode {
  useEffect(() => {
    live.open();
    const stop = follow(queries);
    return () => {
      stop();
      live.close();
    };
  }, []);
  return children;
}

export function App(): ReactNode {
  return (
    <QueryClientProvider client={queries}>
      <Toasts>
        <WithSession>
          <Live>
            <Frame>
              <Suspense fallback={<Skeleton lines={6} />}>
                <Routes routes={ROUTES} otherwise={<NoPage />} />
              </Suspense>
            </Frame>
          </Live>
        </WithSession>
      </Toasts>
    </QueryClientProvider>
  );
}
