/** How a machine spent the last week. */

import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { get } from "../../api/client";
import type { MachineUsageView } from "../../api/types";
import { Card } from "../../ui/parts";
import { PartBand, PartLegend } from "../machines/part_band";
import { PARTS, type Seconds, byKey, whole } from "../machines/parts";

const DAYS = 7;

export function Usage({ host }: { host: string }): ReactNode {
  const { data } = useQuery({
    queryKey: ["usage", DAYS, host],
    queryFn: ({ signal }) => {
      const to = new Date();
      const from = new Date(to.getTime() - DAYS * 86_400_000);
      return get<MachineUsageView>("/usage/machines", { from: from.toISOString(), to: to.toISOString(), host: [host] }, signal);
    },
  });
  // Shares are of the time of which something is known.
  const seconds: Seconds = { ...byKey(data?.rows ?? [], [host]).get(host) };
  delete seconds.unknown;
  if (whole(seconds) <= 0) return null;
  return (
    <Card title={`Last ${DAYS} days`} className="last-days">
      <PartBand seconds={seconds} label={host} />
      <PartLegend parts={PARTS.filter((part) => seconds[part])} seconds={seconds} />
    </Card>
  );
}
