import type { Passkey } from './account.ts';

/** For whom a device makes a key pair. */
export interface PasskeyOwner {
  /** Id of the account. */
  readonly id: string;
  /** Shown by the device when it asks which one is meant. */
  readonly login: string;
  readonly name: string;
  readonly passkeys: readonly Pick<Passkey, 'id' | 'transports'>[];
}

/** What a browser has sent, as far as it is understood here. */
export interface PasskeyResponse {
  /** base64url */
  readonly id: string;
  /** base64url; as the browser says it was asked, which the signature proves. */
  readonly challenge: string;
  /** All of it. */
  readonly json: object;
}

/** The rules of passkeys, for one portal: it names the domain and the origin that devices sign. */
export interface Passkeys {
  /** What a browser needs to have a passkey made. @param challenge base64url */
  creation(owner: PasskeyOwner, challenge: string): Promise<object>;
  /** The passkey that was made, without a name; null unless all that was sent is right. */
  read(response: PasskeyResponse): Promise<Omit<Passkey, 'name' | 'createdAt'> | null>;
  /** What a browser needs to sign in with any passkey of this portal. @param challenge base64url */
  request(challenge: string): Promise<object>;
  /** What the device counts now; null unless the response is signed by the passkey. */
  verify(response: PasskeyResponse, passkey: Passkey): Promise<{ readonly counter: number } | null>;
}

/** Reads what a browser has sent; null when it is nothing of the kind. */
export function parsePasskeyResponse(sent: unknown): PasskeyResponse | null {
  const json = toObject(sent);
  const clientData = toObject(json?.response)?.clientDataJSON;
  if (json === null || typeof json.id !== 'string' || typeof clientData !== 'string') return null;
  const challenge = toObject(toJson(Buffer.from(clientData, 'base64url').toString('utf8')))?.challenge;
  return typeof challenge === 'string' ? { id: json.id, challenge, json } : null;
}

function toObject(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
}

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
