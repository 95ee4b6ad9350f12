import { createPersonsModel, type Identity, identityKeyOf, type LinkFact, type PersonsModel } from './persons.ts';

/** Who owns accepted messages, and the model that says who of them is one person. */
export interface Cast {
  readonly model: PersonsModel;
  readonly owners: ReadonlyMap<string, { readonly identity: Identity; readonly household: number }>;
  /** Takes one acknowledged message; call in the order of acknowledgement within a household. */
  accept(household: number, message: { owner: Identity | null; fact: LinkFact | null }): void;
  /** A batch of the household was never acknowledged: whom its facts joined cannot be known. */
  doubt(household: number): void;
  isDoubtful(identity: Identity): boolean;
  readonly doubtfulHouseholds: number;
  /** Persons that own an accepted message, without those of doubtful households. */
  persons(): number;
}

export function createCast(): Cast {
  const model = createPersonsModel();
  const owners = new Map<string, { identity: Identity; household: number }>();
  const doubtful = new Set<number>();
  const isDoubtful = (identity: Identity) => {
    const owner = owners.get(identityKeyOf(identity));
    // With a doubtful household, a stranger may be one of its people whose batch was stored without an answer.
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
