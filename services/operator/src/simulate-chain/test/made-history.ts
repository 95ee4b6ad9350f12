import { createRun } from '../../simulate/run.ts';
import { createTraffic, type TrafficLine } from '../traffic.ts';

export const CHAIN = { name: 'made-up-chain', id: 'eip155:31337' };
const NOON_MS = Date.UTC(2026, 10, 21, 12);

/** All lines of a history, in groups as the traffic makes them. */
export function makeGroups(seed: number, { activities = 600, broken = 0.1 } = {}): TrafficLine[][] {
  const run = createRun(seed, NOON_MS);
  const traffic = createTraffic({ run, chain: CHAIN.name, activitiesMax: activities, brokenShare: broken });
  const groups: TrafficLine[][] = [];
  for (let group = traffic.next(NOON_MS); group !== null; group = traffic.next(NOON_MS + groups.length))
    groups.push(group);
  return groups;
}
