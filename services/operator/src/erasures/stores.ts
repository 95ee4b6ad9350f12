import { fromUuidText } from '@playline/contracts';
import type { ErasureRecords, ErasureRows } from '@playline/erasure';
import type { People } from '@playline/people';
import { withStore } from '../await-store.ts';
import { type ExitCode, type Terminal, UsageError } from '../command.ts';

/** Openers of the stores of a deployment; each throws UnreachableError when its address is not configured. */
export interface ErasuresContext {
  readonly openRows: () => Promise<ErasureRows>;
  readonly openRecords: () => Promise<ErasureRecords>;
  readonly openPeople: () => Promise<People>;
  readonly wallClockMs: () => number;
  /** Aborted when the user interrupts the command. */
  readonly stop: AbortSignal;
}

/** What an action of the command works with. */
export interface ErasuresWork {
  readonly context: ErasuresContext;
  readonly records: ErasureRecords;
  /** Whether results are printed as JSON. */
  readonly isJson: boolean;
  readonly terminal: Terminal;
}

/** What an action about one erasure works with. */
export interface ErasureWork extends ErasuresWork {
  readonly erasureId: Buffer;
}

/** Opens the records, waits until they answer, and closes them. @throws UnreachableError, or what `work` throws */
export async function withRecords(
  context: ErasuresContext,
  work: (records: ErasureRecords) => Promise<ExitCode>,
): Promise<ExitCode> {
  return withStore('ClickHouse', await context.openRecords(), work);
}

/** Opens the rows and closes them again. They are in the same store as the records, which already answers. */
export async function withRows<T>({ openRows }: ErasuresContext, work: (rows: ErasureRows) => Promise<T>): Promise<T> {
  const rows = await openRows();
  try {
    return await work(rows);
  } finally {
    await rows.close();
  }
}

const ERASURE_ID = /^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$/i;

/** The 16 bytes of an id as returned by the gateway. @throws UsageError that does not repeat the argument */
export function parseErasureId(word: string): Buffer {
  // An argument in the wrong place may be the id of a person.
  if (!ERASURE_ID.test(word))
    throw new UsageError(
      'expected the id of an erasure as the gateway returned it: 0192f3a4-5b6c-7d8e-9f00-112233445566',
    );
  return fromUuidText(word);
}
