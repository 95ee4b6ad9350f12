// The ceiling of one environment: its links are applied by one linker, and stored by one node of Redis.
import { TOPICS } from '@playline/contracts';
import { parseNodeName } from '../../../infra/local/node-names.ts';
import { atLeast, type Row, toRow } from '../figure.ts';
import { waitUntilCommitted } from '../figures/linker.ts';
import { pairRandom, prepareLinks } from '../link-facts.ts';
import { publish } from '../prepared-records.ts';
import type { MeasuredStack } from './measured-stack.ts';

const ENVIRONMENT = 'demo-production';

export async function measureCeiling(one: MeasuredStack, two: MeasuredStack, links: number): Promise<Row> {
  const rateOf = async (stack: MeasuredStack) => {
    await measureRate(stack, links);
    return measureRate(stack, links);
  };
  return toRow({
    case: `${links} random links of one environment, two of each (three brokers)`,
    unit: 'links per second',
    value: await rateOf(two),
    peer: 'one of everything',
    peerValue: await rateOf(one),
    bars: [atLeast('value', 20_000)],
    notes: `${TOPICS.identityLinks.partitions} cells in Redis, of which one is used`,
  });
}

/** Suspends all linkers while facts are published, so that only their work is measured. */
async function measureRate({ file }: MeasuredStack, links: number): Promise<number> {
  const bench = { stores: file, topicPrefix: '', environmentId: ENVIRONMENT };
  const records = await prepareLinks(bench, pairRandom(`links-${performance.now()}`, links));
  const isLinker = (name: string) => parseNodeName(name).kind === 'identity-linker';
  const linkers = Object.entries(file.processes).flatMap(([name, pid]) => (isLinker(name) ? [pid] : []));
  for (const pid of linkers) process.kill(pid, 'SIGSTOP');
  await publish(bench, records).finally(() => {
    for (const pid of linkers) process.kill(pid, 'SIGCONT');
  });
  const startMs = performance.now();
  await waitUntilCommitted(bench);
  return links / ((performance.now() - startMs) / 1000);
}
