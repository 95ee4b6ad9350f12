import type { IdentityKind, Message } from '@playline/contracts';

/** An identity as a message names it; the id trimmed. */
export interface IdentityReference {
  kind: IdentityKind;
  id: string;
}

export interface MessageIdentities {
  /** The user if the message names one, else the anonymous identity, else nobody. */
  owner: IdentityReference | null;
  anonymous: IdentityReference | null;
  user: IdentityReference | null;
  from: IdentityReference | null;
  to: IdentityReference | null;
}

type IdFields = 'anonymousId' | 'userId' | 'identityType' | 'fromId' | 'fromType' | 'toId' | 'toType';

function referenceOf(kind: IdentityKind, id: string | undefined): IdentityReference | null {
  const trimmed = id?.trim() ?? '';
  return trimmed === '' ? null : { kind, id: trimmed };
}

/** The identities a message names. An id without a type is `untyped`; a blank id is nobody. */
export function identitiesOf(message: Pick<Message, IdFields>): MessageIdentities {
  const anonymous = referenceOf('anonymous', message.anonymousId);
  const user = referenceOf(message.identityType ?? 'untyped', message.userId);
  const from = referenceOf(message.fromType ?? 'untyped', message.fromId);
  const to = referenceOf(message.toType ?? 'untyped', message.toId);
  return { owner: user ?? anonymous, anonymous, user, from, to };
}
