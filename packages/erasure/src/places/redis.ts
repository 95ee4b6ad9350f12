import type { Place } from './place.ts';

const byScript = (name: string, script: string): Place => ({ name, clearing: { by: 'script', script } });
const without = (name: string, reason: string): Place => ({ name, clearing: { by: 'no personal data', reason } });

/** Families of Redis keys, written as in `infra/redis/README.md`. No raw id stands in any: identities are keyed hashes. */
export const REDIS_PLACES: readonly Place[] = [
  byScript('i:{env}:<bucket>', 'the graph takes the person out'),
  byScript('m:{env}:<root>', 'the graph takes the person out'),
  {
    name: 'f:{env}:<bucket>',
    clearing: { by: 'kept', reason: 'without it what was erased would come back; keyed hashes only' },
  },
  without('f:{env}', 'says which buckets have a fence'),
  byScript('u:{env}', 'the graph takes the person out; what is left is the time of the latest unlink'),
  without('d:{env}', 'places in the log'),
  byScript('h:{env}', 'the hold is released at the end'),
  byScript('hl:{env}', 'the hold is released at the end'),
  byScript('hk:{env}', 'the hold is released at the end'),
  without('e:{env}', 'says that holds have moved'),
  byScript('erasure:lapsing', 'the hold is released at the end; holds no identity'),
  byScript('c:{env}:<bucket>', 'the consents forget the person'),
  without('c:log:<consent topic>', 'places in the log'),
  byScript('o:{env}', 'trimmed when the decisions are published, which the erasure waits for'),
  without('identity:applied:<link topic>', 'places in the log'),
  without('identity:epoch', 'random'),
  without('k:<SHA-256 of the key>', 'keys of projects'),
  without('k:environment:<id>', 'keys of projects'),
  without('k:project:<id>', 'keys of projects'),
  without('k:complete', 'a run of Redis'),
  without('k:live', 'keys of projects'),
  without('k:list', 'a run of Redis'),
  without('k:version', 'a number'),
  without('k:changes', 'keys of projects'),
  without('k:turn', 'a command that runs'),
  without('access:<kind>', 'projects, keys of partners; of people the accounts of operators alone'),
  without('access:<kind>:places', 'places in the log'),
  without('access:<kind>:version', 'random'),
  without('access:<kind>:complete', 'a run of Redis'),
  without('access:<kind>:turn', 'a command that runs'),
  without('access:session:<hash>', 'people who sign in to the portal, never players; ends by itself within seven days'),
  without('access:session:of:<account id>', 'hashes of sessions of people who sign in to the portal'),
  without('access:one-time:<purpose>:<hash>', 'links and challenges of people who sign in to the portal'),
  without('access:one-time:spent:<purpose>:<hash>', 'that a form was sent'),
  without('access:one-time:attempts:<hash>', 'how often somebody tried to sign in; the login is hashed'),
  without('chain:watermark', 'times'),
  without('rate:<id>', 'keys of projects; addresses of clients stay in the process'),
];
