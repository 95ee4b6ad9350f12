import { createDeck, type Random } from '../simulate/random.ts';
import type { MadeActivity } from './activity.ts';

/** An invalid line, and how each text of its refusal begins: one text for each fault. */
export interface BrokenLine {
  readonly text: string;
  readonly refusal: readonly string[];
}

type Damage = (activity: MadeActivity) => BrokenLine;

/** With members that the types do not allow. */
function damaged(activity: MadeActivity, change: object, ...refusal: string[]): BrokenLine {
  return { text: JSON.stringify({ ...activity, ...change }), refusal };
}

const personOf = ({ details }: MadeActivity) => (details.to === undefined ? 'from' : 'to');
/** Changes a sale of one asset: with assets of two contracts there would be one more fault. */
const withAsset = ({ details }: MadeActivity, change: object) => {
  const { asset } = details;
  const changed = Array.isArray(asset) ? [{ ...asset[0], ...change }] : { ...asset, ...change };
  return { details: { ...details, asset: changed } };
};
const assetPath = ({ details }: MadeActivity) => (Array.isArray(details.asset) ? 'details.asset.0' : 'details.asset');
const PLACE = { transaction_hash: `0x${'5'.repeat(64)}`, block_number: '1', transaction_index: '0', log_index: null };

/** Every rule of the import that a careless exporter may break. */
const DAMAGES: readonly Damage[] = [
  () => ({ text: '{"half":', refusal: ['is no JSON'] }),
  () => ({ text: '[]', refusal: ['message'] }),
  (activity) => damaged(activity, { id: activity.id.slice(1) }, 'id'),
  (activity) => damaged(activity, { id: undefined }, 'id'),
  (activity) => damaged(activity, { chain: { id: 'eip155:1', name: activity.chain } }, 'chain'),
  (activity) => damaged(activity, { chain: 'Some Chain', indexed_at: 'yesterday' }, 'chain', 'indexed_at'),
  (activity) => damaged(activity, { type: 'gift' }, 'type'),
  (activity) => damaged(activity, { indexed_at: '2026-02-30T00:00:00Z' }, 'indexed_at'),
  (activity) => damaged(activity, { details: null }, 'details'),
  (activity) => damaged(activity, { blockchain_metadata: undefined }, 'blockchain_metadata'),
  (activity) =>
    damaged(
      activity,
      { blockchain_metadata: { ...PLACE, block_number: '007', log_index: '-1' } },
      'blockchain_metadata.block_number',
      'blockchain_metadata.log_index',
    ),
  (activity) => {
    const name = personOf(activity);
    return damaged(activity, { details: { ...activity.details, [name]: '0x12' } }, `details.${name}`);
  },
  (activity) =>
    damaged(activity, withAsset(activity, { contract_type: 'ERC404' }), `${assetPath(activity)}.contract_type`),
  (activity) =>
    damaged(activity, withAsset(activity, { contract_address: '0x' }), `${assetPath(activity)}.contract_address`),
];

/**
 * Creates the maker of broken lines, from activities that never happened. Each damage comes once before any repeats.
 */
export function createBreak(random: Random): (activity: MadeActivity) => BrokenLine {
  const draw = createDeck(random, DAMAGES);
  return (activity) => draw()(activity);
}
