import { setTimeout as delay } from 'node:timers/promises';
import { until } from '@playline/testkit';
import { asVisitor, createPerson, track } from './people.ts';
import type { ErasureRig } from './rig.ts';

const BATCH = 20;
const PEOPLE = 10;
/** Leaves most of the CPU time for the erasure. */
const PAUSE_MS = 100;

export interface OtherPlayers {
  sent(): number;
  /** Waits until all accepted messages are stored. @returns ids of missing messages */
  missing(): Promise<string[]>;
  close(): Promise<void>;
}

export function openOtherPlayers(rig: ErasureRig): OtherPlayers {
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
  // Prevents an unhandled rejection. `close` throws the error.
  running.catch(() => {});
  const readMissing = async () => {
    const rows = await rig.query('SELECT DISTINCT toString(message_id) FROM events');
    const stored = new Set(rows.map(([id]) => id));
    return sent.filter((id) => !stored.has(id));
  };
  return {
    sent: () => sent.length,
    async missing() {
      await until("all of the other people's messages are stored", async () => (await readMissing()).length === 0);
      return await readMissing();
    },
    async close() {
      isOpen = false;
      await running;
    },
  };
}
