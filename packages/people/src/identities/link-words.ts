/** Why the rules refused a link. */
const REFUSALS: Readonly<Record<string, string>> = {
  blocked: 'one of the ids is a value that many people share, or is blocked in this environment',
  fenced: 'the message is not later than the erasure of one of the two',
  shared_device: 'both sides have a user already: a device that several people share',
  two_known_users: 'an alias may not join two users who are known',
  too_many_identities: 'the person would have too many identities',
  too_many_anonymous_ids: 'the person would have too many new anonymous ids',
  suspect:
    'one of the ids links as many anonymous ids as no person has. An operator allows or blocks it (identity suspects)',
  operator_allowed: 'an operator has allowed the id to link many anonymous ids (identity suspects)',
  operator_blocked: 'an operator has blocked the id: it links nobody (identity suspects)',
  unlinked: 'an operator has split the two, and the message is not later than that (identity unlink)',
  not_one_person: 'those to be split off are not of one person',
};

/** Why the rules refused something, for people. An unknown reason is returned unchanged. */
export const refusalText = (reason: string): string =>
  // Own members only, so that a reason such as `constructor` is not found.
  (Object.hasOwn(REFUSALS, reason) ? REFUSALS[reason] : undefined) ?? reason;

/** The fields of a decision that are described. */
export interface DecidedLink {
  readonly link: string;
  readonly outcome: string;
  readonly reason: string;
  readonly movedCount: number;
}

/** The result of a link, for people. An unknown word is returned unchanged. */
export function wordsOfLink({ link, outcome, reason, movedCount }: DecidedLink): string {
  const moved = movedCount === 1 ? '1 identity' : `${movedCount} identities`;
  if (outcome === 'linked') return `the two became one person, ${moved} came under another person key`;
  if (outcome === 'unlinked') return `an operator split the two, and ${moved} became a person of their own`;
  if (link === 'unlink' && outcome === 'unchanged') return 'there was nothing to split';
  if (outcome === 'unchanged' && reason !== '') return refusalText(reason);
  if (outcome === 'unchanged') return 'they were one person already';
  if (outcome === 'ambiguous') return 'left alone: the id without a type belongs to the same id of another type';
  return refusalText(reason);
}
