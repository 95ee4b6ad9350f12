import { createPersonsModel, type Identity, identityKeyOf, type LinkFact, type PersonsModel } from './persons.ts';

/** The owners of accepted messages, and the model of which identities are one person. */
export interface Cast {
  readonly model: PersonsModel;
  readonly owners: ReadonlyMap<string, { readonly identity: Identity; readonly household: number }>;
  /** Adds one acknowledged message; call in the order of acknowledgement within a household. */
  accept(household: number, message: { owner: Identity | null; fact: LinkFact | null }): void;
  /** A batch of the household was never acknowledged, so its persons are unknown. */
  doubt(household: number): void;
  isDoubtful(identity: Identity): boolean;
  readonly doubtfulHouseholds: number;
  /** Number of persons that own an accepted message, without those of doubtful households. */
  persons(): number;
}

export function createCast(): Cast {
  const model = createPersonsModel();
  const owners = new Map<string, { identity: Identity; household: number }>();
  const doubtful = new Set<number>();
  const isDoubtful = (identity: Identity) => {
    const owner = owners.get(identityKeyOf(identity));
    // With a doubtful household, an unknown owner may come from a batch that was stored without an answer.
    return owner === undefined ? doubtful.size > 0 : doubtful.has(owner.household);
  };
  return {
    model,
    owners,
    accept: (household, { owner, fact }) => {
      if (owner !== null) {
        model.see(owner);
        owners.set(identityKeyOf(owner), { identity: owner, household });
      }
      if (fact !== null) model.apply(fact);
    },
    doubt: (household) => void doubtful.add(household),
    isDoubtful,
    get doubtfulHouseholds() {
      return doubtful.size;
    },
    persons: () => {
      const persons = new Set<string>();
      for (const { identity } of owners.values()) if (!isDoubtful(identity)) persons.add(model.personOf(identity));
      return persons.size;
    },
  };
}
