import type { Redis } from 'ioredis';
import type { ConsentStore, PlacedConsent } from '../consents.ts';
import type { PeopleRebuild } from '../rebuild.ts';
import { fromReply, fromStanding, fromValue, toValue } from './consent-wire.ts';
import type { Layout } from './layout.ts';
import { createScript } from './scripts.ts';

/** The consents, and what brings them back in a rebuild. */
export function createConsents(redis: Redis, layout: Layout): ConsentStore & Pick<PeopleRebuild, 'loadConsents'> {
  const putConsent = createScript(redis, 'putConsent');
  const readConsent = createScript(redis, 'readConsent');
  const markConsents = createScript(redis, 'markConsents');
  const consentStanding = createScript(redis, 'consentStanding');

  const put = async (change: PlacedConsent, epoch: '' | 'epoch') => {
    const { environmentId, identityKey: key } = change;
    const buckets = [layout.consentsOf(environmentId, key), layout.fencesOf(environmentId, key)];
    const keys = [layout.epoch, ...buckets, layout.consentLog];
    return fromReply(await putConsent(keys, [key, toValue(change), change.receivedAt, epoch]));
  };
  return {
    apply: (change) => put(change, 'epoch'),
    loadConsents: (changes) => Promise.all(changes.map((change) => put(change, ''))),
    async read(environmentId, identityKey) {
      const keys = [layout.epoch, layout.consentsOf(environmentId, identityKey), layout.consentLog];
      const value = await readConsent(keys, [identityKey]);
      return Buffer.isBuffer(value) ? fromValue(value) : null;
    },
    standing: async () => fromStanding(await consentStanding([layout.consentLog], [])),
    markCurrent: async (run, ends) => {
      const lasts = [...ends].filter(([, end]) => end > 0).flatMap(([partition, end]) => [partition, end - 1]);
      return (await markConsents([layout.consentLog], [run, ...lasts])) === 1;
    },
    async forget(environmentId, identityKeys) {
      await Promise.all(identityKeys.map((key) => redis.hdel(layout.consentsOf(environmentId, key), key)));
    },
  };
}
