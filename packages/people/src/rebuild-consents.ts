import type { ApplyOutcome, PlacedConsent } from './consents.ts';
import type { PeopleRebuild } from './rebuild.ts';

/** What a rebuild has done. */
export type RebuiltConsents = Record<ApplyOutcome, number>;

/** Changes per call. More would not make it faster. */
const ROWS_A_CALL = 1_000;

/**
 * Restores consents from their history, in any order and repeatedly: only places count, so gateways may write
 * meanwhile. Load the fences first, or rows of erased identities come back.
 */
export async function rebuildConsents(
  rebuild: Pick<PeopleRebuild, 'loadConsents'>,
  rows: AsyncIterable<PlacedConsent> | Iterable<PlacedConsent>,
): Promise<RebuiltConsents> {
  const rebuilt: RebuiltConsents = { applied: 0, superseded: 0, fenced: 0 };
  const load = async (changes: readonly PlacedConsent[]) => {
    for (const outcome of await rebuild.loadConsents(changes)) rebuilt[outcome]++;
  };
  let waiting: PlacedConsent[] = [];
  for await (const row of rows) {
    waiting.push(row);
    if (waiting.length < ROWS_A_CALL) continue;
    await load(waiting);
    waiting = [];
  }
  await load(waiting);
  return rebuilt;
}
