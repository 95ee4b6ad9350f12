import { isDeepStrictEqual } from 'node:util';
import { type ApplyOutcome, type ConsentStore, type HeldConsent, isLater, type PlacedConsent } from '../consents.ts';
import { MissingEpochFault } from '../faults.ts';
import type { PeopleRebuild } from '../rebuild.ts';
import { assertWhole, environmentOf, type Model } from './model.ts';

/** Consents and their rebuild. This store is always current, because a process does not restart unnoticed. */
export function createConsents(model: Model): ConsentStore & Pick<PeopleRebuild, 'loadConsents'> {
  const needEpoch = () => {
    if (model.epoch === null) throw new MissingEpochFault();
  };
  const put = ({ environmentId, identityKey, status, receivedAt, place }: PlacedConsent): ApplyOutcome => {
    const { consents, fences } = environmentOf(model, environmentId);
    const hex = identityKey.toString('hex');
    if (receivedAt <= (fences.get(hex) ?? Number.NEGATIVE_INFINITY)) return 'fenced';
    const stored = consents.get(hex);
    if (stored !== undefined && !isLater(place, stored.place)) return 'superseded';
    consents.set(hex, { status, receivedAt, place });
    return 'applied';
  };
  return {
    apply: async (change) => {
      needEpoch();
      return put(change);
    },
    read: async (environmentId, identityKey) => {
      assertWhole(model);
      return environmentOf(model, environmentId).consents.get(identityKey.toString('hex')) ?? null;
    },
    loadConsents: async (changes) => changes.map(put),
    standing: async () => ({ run: 'this process', isCurrent: true, applied: new Map() }),
    markCurrent: async () => true,
    readStored: async (environmentId, identityKeys) => {
      const { consents } = environmentOf(model, environmentId);
      return identityKeys.flatMap((identityKey) => {
        const stored = consents.get(identityKey.toString('hex'));
        return stored === undefined ? [] : [{ identityKey, ...stored }];
      });
    },
    forget: async (environmentId, judged) => {
      const { consents } = environmentOf(model, environmentId);
      const isStill = ({ identityKey, ...consent }: HeldConsent) =>
        isDeepStrictEqual(consents.get(identityKey.toString('hex')), consent);
      return judged.filter((consent) => isStill(consent) && consents.delete(consent.identityKey.toString('hex')))
        .length;
    },
  };
}
