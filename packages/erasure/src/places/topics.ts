import type { Place } from './place.ts';
import { expiring, without } from './words.ts';

const HOUR_MS = 60 * 60 * 1000;
/** 72 hours after the last record of a segment, which is filled for six hours. */
export const IDENTITY_WINDOW_MS = 78 * HOUR_MS;
/**
 * From when the fences stood and the log was stored until it holds nothing of a person: what a gateway publishes late comes
 * within 20 seconds, and brokers look for what has expired every five minutes.
 */
export const LOG_EXPIRES_AFTER_MS = IDENTITY_WINDOW_MS + HOUR_MS / 6;
/** Seven days, in the same way. */
const ERASURES_WINDOW_MS = (7 * 24 + 6) * HOUR_MS;

const withPerson = expiring(IDENTITY_WINDOW_MS);
const letters = (reason: string) => `records as they were, also ones that nobody can read: ${reason}`;
/** What waits is written anew every day, so the window begins when the last erasure that it waits for has ended. */
const PARKED = 'ids that belong together, received behind the cut-off of an erasure that their links wait for';

/** What everybody can read on the chain itself. That an address is the id of a person is said, and erased, elsewhere. */
const OF_A_CHAIN = 'public addresses and events of a chain; nothing that says whose an address is';
const ofChain = (name: string, reason = OF_A_CHAIN): Place => without(name, reason);

const MINTED = 'what a team mints for which public address; nothing that says whose an address is';

/** Topics about who may use the service. The only people they name are operators' accounts. */
const ofAccess = without;

/** Topics, those of dead letters included. */
export const TOPIC_PLACES: readonly Place[] = [
  withPerson('audience.messages.v1', 'messages with their ids'),
  withPerson('audience.messages.v1.dead', letters('messages with their ids')),
  withPerson('audience.identity-links.v1', 'ids that belong together'),
  withPerson('audience.identity-links.v1.dead', letters('ids that belong together')),
  withPerson('audience.identity-links.v1.parked', PARKED),
  withPerson('audience.identity-links.v1.parked.dead', letters(PARKED)),
  withPerson('audience.identity-decisions.v1', 'keyed hashes of identities'),
  withPerson('audience.identity-decisions.v1.dead', letters('keyed hashes of identities')),
  withPerson('audience.rejections.v1', 'names of our contract'),
  withPerson('audience.rejections.v1.dead', letters('text of clients')),
  withPerson('audience.consents.v1', 'keyed hashes of identities and what they chose'),
  withPerson('audience.consents.v1.dead', letters('keyed hashes of identities and what they chose')),
  {
    name: 'audience.erasures.v1',
    clearing: {
      by: 'ttl',
      windowMs: ERASURES_WINDOW_MS,
      reason: 'keyed hashes of the erased, so that they are erased',
    },
  },
  {
    name: 'audience.erasures.v1.dead',
    clearing: { by: 'ttl', windowMs: ERASURES_WINDOW_MS, reason: letters('keyed hashes of the erased') },
  },
  ofAccess('access.keys.v1', 'keys of projects, as hashes'),
  ofAccess('access.keys.v1.dead', 'keys of projects, as hashes'),
  ofAccess('access.projects.v1', 'names of projects and their environments'),
  ofAccess('access.projects.v1.dead', 'names of projects and their environments'),
  ofAccess('access.rate-limit-keys.v1', 'keys of partners, as hashes'),
  ofAccess('access.rate-limit-keys.v1.dead', 'keys of partners, as hashes'),
  ofAccess('access.collections.v1', 'contracts that projects have linked'),
  ofAccess('access.collections.v1.dead', 'contracts that projects have linked'),
  ofAccess('access.accounts.v1', 'names and logins of people who sign in to the portal; removed with their accounts'),
  ofAccess('access.accounts.v1.dead', 'names and logins of people who sign in to the portal'),
  ofAccess('access.signable-keys.v1', 'addresses of the service itself, with sealed private keys'),
  ofAccess('access.signable-keys.v1.dead', 'addresses of the service itself, with sealed private keys'),
  ofAccess('access.audit.v1', 'what people who sign in to the portal did, with the addresses of their requests'),
  ofAccess('access.audit.v1.dead', 'what people who sign in to the portal did'),
  ofChain('chain.activities.v1'),
  ofChain('chain.activities.v1.dead'),
  ofChain('chain.tokens.v1', 'what everybody can read about a token'),
  ofChain('chain.tokens.v1.dead', 'what everybody can read about a token'),
  ofChain('chain.index-progress.v1', 'numbers and hashes of blocks'),
  ofChain('chain.index-progress.v1.dead', 'numbers and hashes of blocks'),
  ofChain('chain.mint-requests.v1', MINTED),
  ofChain('chain.mint-requests.v1.dead', MINTED),
  ofChain('chain.mint-state.v1', MINTED),
  ofChain('chain.mint-state.v1.dead', MINTED),
  ofChain('chain.mint-transactions.v1', 'transactions as everybody can read them on their chain'),
  ofChain('chain.mint-transactions.v1.dead', 'transactions as everybody can read them on their chain'),
  ofChain('chain.metadata.v1', 'what a team tells the public of its collections'),
  ofChain('chain.metadata.v1.dead', 'what a team tells the public of its collections'),
];
