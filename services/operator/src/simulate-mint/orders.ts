import { type ShownEnvelope, toWords } from './api.ts';
import { toBody } from './assets.ts';
import type { AskedAsset } from './book.ts';
import { describeQuota } from './quota-words.ts';
import { type MintStage, mintsOf } from './stage.ts';

const toOrder = (assets: readonly AskedAsset[]) => ({ assets: assets.map(toBody) });

/**
 * Requests assets of one collection that must be accepted. After a lost answer, 409 says which of them that attempt has
 * stored; the others are requested again, as a careful client does.
 * @param assets not empty, all of one collection
 */
export async function placeOrder(stage: MintStage, assets: readonly AskedAsset[]): Promise<void> {
  const { api, book, differences, deeds } = stage;
  deeds.orders++;
  const path = mintsOf(stage, assets[0]!.collection);
  let rest = assets;
  while (rest.length > 0) {
    const answer = await api.call({ method: 'POST', path, body: toOrder(rest) });
    if (answer.status === 202) {
      const fault = describeQuota('mint', answer);
      if (fault !== null) differences.add('answer', `an order: ${fault}`);
      return book.accept(rest);
    }
    const taken = answer.status === 409 && answer.isDoubtful ? findTaken(rest, answer.json) : [];
    book.accept(taken);
    rest = rest.filter((asset) => !taken.includes(asset));
    if (taken.length > 0) continue;
    if (answer.status === null && answer.isDoubtful) return book.doubt(rest);
    return differences.add(
      'answer',
      `an order of ${rest[0]!.referenceId} and ${rest.length - 1} more ${toWords(answer)}`,
    );
  }
}

function findTaken(assets: readonly AskedAsset[], json: unknown): readonly AskedAsset[] {
  const values = (json as ShownEnvelope | null)?.details?.values;
  const ids = new Set(Array.isArray(values) ? values : []);
  return assets.filter(({ referenceId }) => ids.has(referenceId));
}

export interface ConflictingOrder {
  /** Used in texts of differences. */
  readonly name: string;
  /** All of one collection. */
  readonly assets: readonly AskedAsset[];
  /** Reference ids that the answer must name, in order. */
  readonly taken: readonly string[];
  /** Reference ids that must stay unknown. */
  readonly fresh: readonly string[];
}

/** Requests assets of which some are taken: none may be accepted, and the answer must name all taken ones. */
export async function placeConflict(stage: MintStage, order: ConflictingOrder): Promise<void> {
  const { api, differences, deeds } = stage;
  const { name, assets, taken, fresh } = order;
  deeds.conflicts++;
  const { collection } = assets[0]!;
  const answer = await api.call({ method: 'POST', path: mintsOf(stage, collection), body: toOrder(assets) });
  const { code, details } = (answer.json ?? {}) as ShownEnvelope;
  const values = JSON.stringify(details?.values);
  if (answer.status !== 409 || code !== 'CONFLICT_ERROR')
    differences.add('answer', `${name}: expected 409, ${toWords(answer)}`);
  else if (values !== JSON.stringify(taken))
    differences.add('answer', `${name}: expected ${JSON.stringify(taken)} to be told as taken, was ${values}`);
  for (const referenceId of fresh) await expectAbsent(stage, collection, { referenceId, name });
}

/** Checks that a reference id is unknown, since its whole request was refused. */
export async function expectAbsent(
  stage: MintStage,
  collection: AskedAsset['collection'],
  { referenceId, name }: { referenceId: string; name: string },
): Promise<void> {
  const answer = await stage.api.call({ path: `${mintsOf(stage, collection)}/${encodeURIComponent(referenceId)}` });
  if (answer.status === 404) return;
  const kind = answer.status === 200 ? 'uninvited' : 'answer';
  stage.differences.add(kind, `${name}: ${referenceId} must not be known, and ${toWords(answer)}`);
}
