import type { Redis } from '@playline/stores/redis';
import type { ConsentStore, PlacedConsent } from '../consents.ts';
import type { PeopleRebuild } from '../rebuild.ts';
import { fromReply, fromStanding, fromValue, toValue } from './consent-wire.ts';
import type { Layout } from './layout.ts';
import { createScript } from './scripts.ts';

/** Takes Redis a few milliseconds. */
const FORGOTTEN_A_CALL_MAX = 1_000;

/** Consents and their rebuild. */
export function createConsents(redis: Redis, layout: Layout): ConsentStore & Pick<PeopleRebuild, 'loadConsents'> {
  const forgetConsents = createScript(redis, 'forgetConsents');
  const putConsent = createScript(redis, 'putConsent');
  const readConsent = createScript(redis, 'readConsent');
  const markConsents = createScript(redis, 'markConsents');
  const consentStanding = createScript(redis, 'consentStanding');

  const put = async (change: PlacedConsent, epoch: '' | 'epoch') => {
    const { environmentId, identityKey: key } = change;
    const buckets = [layout.consentsOf(environmentId, key), layout.fencesOf(environmentId, key)];
    const keys = [layout.epoch, ...buckets, layout.consentLog];
    return fromReply(await putConsent(keys, [key, toValue(change), epoch]));
  };
  return {
    apply: (change) => put(change, 'epoch'),
    loadConsents: (changes) => Promise.all(changes.map((change) => put(change, ''))),
    async read(environmentId, identityKey) {
      const keys = [layout.epoch, layout.consentsOf(environmentId, identityKey), layout.consentLog, layout.fencedRun];
      const value = await readConsent(keys, [identityKey]);
      return Buffer.isBuffer(value) ? fromValue(value) : null;
    },
    standing: async () => fromStanding(await consentStanding([layout.consentLog], [])),
    markCurrent: async (run, ends) => {
      const lasts = [...ends].filter(([, end]) => end > 0).flatMap(([partition, end]) => [partition, end - 1]);
      return (await markConsents([layout.consentLog], [run, ...lasts])) === 1;
    },
    async readStored(environmentId, identityKeys) {
      const read = (key: Buffer) => redis.hgetBuffer(layout.consentsOf(environmentId, key), key);
      const values = await Promise.all(identityKeys.map(read));
      return values.flatMap((value, at) =>
        value === null ? [] : [{ identityKey: identityKeys[at]!, ...fromValue(value) }],
      );
    },
    async forget(environmentId, consents) {
      let forgotten = 0;
      for (let at = 0; at < consents.length; at += FORGOTTEN_A_CALL_MAX) {
        const some = consents.slice(at, at + FORGOTTEN_A_CALL_MAX);
        const buckets = some.map(({ identityKey }) => layout.consentsOf(environmentId, identityKey));
        const args = some.flatMap((consent) => [consent.identityKey, toValue(consent)]);
        forgotten += Number(await forgetConsents(buckets, args));
      }
      return forgotten;
    },
  };
}
