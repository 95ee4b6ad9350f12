import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { asVisitor, createPerson, track } from './people.ts';
import type { ErasureRig } from './rig.ts';

const BATCH = 20;
const PEOPLE = 10;
/** Leaves most of the processor to the erasure. */
const PAUSE_MS = 100;

/** People who play during the whole test and are not erased. */
export interface Others {
  /** Number of accepted messages. */
  sent(): number;
  /** Waits until everything sent is stored. @returns ids of messages that are missing */
  missing(): Promise<string[]>;
  /** Ends the traffic; resolves when the last batch is answered. */
  close(): Promise<void>;
}

/** Sends batches one after the other until it is closed. */
export function openOthers(rig: ErasureRig): Others {
  const people = Array.from({ length: PEOPLE }, () => createPerson(rig));
  const sent: string[] = [];
  let isOpen = true;
  const run = async () => {
    while (isOpen) {
      const messages = Array.from({ length: BATCH }, (_, at) => track(asVisitor(people[at % PEOPLE]!)));
      await rig.send(messages);
      sent.push(...messages.map(({ messageId }) => messageId));
      await delay(PAUSE_MS);
    }
  };
  const running = run();
  // The error is thrown where the promise is awaited.
  running.catch(() => {});
  const readMissing = async () => {
    const rows = await rig.query('SELECT DISTINCT toString(message_id) FROM events');
    const stored = new Set(rows.map(([id]) => id));
    return sent.filter((id) => !stored.has(id));
  };
  return {
    sent: () => sent.length,
    async missing() {
      await until('what others sent is stored', async () => (await readMissing()).length === 0);
      return await readMissing();
    },
    async close() {
      isOpen = false;
      await running;
    },
  };
}
