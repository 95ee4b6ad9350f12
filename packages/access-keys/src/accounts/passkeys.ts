import type { Passkey } from './account.ts';

/** Owner of a passkey that a device creates. */
export interface PasskeyOwner {
  /** Id of the account. */
  readonly id: string;
  /** Shown by the device when it offers a choice. */
  readonly login: string;
  readonly name: string;
  readonly passkeys: readonly Pick<Passkey, 'id' | 'transports'>[];
}

/** The members of a browser's response that are used here. */
export interface PasskeyResponse {
  /** base64url */
  readonly id: string;
  /** base64url; the challenge in the browser's client data, which is signed. */
  readonly challenge: string;
  /** The whole response. */
  readonly json: object;
}

/** The rules of passkeys, for one portal: it names the domain and the origin that devices sign. */
export interface Passkeys {
  /** What a browser needs to have a passkey made. @param challenge base64url */
  creation(owner: PasskeyOwner, challenge: string): Promise<object>;
  /** The new passkey, without a name; null when the response is invalid. */
  read(response: PasskeyResponse): Promise<Omit<Passkey, 'name' | 'createdAt'> | null>;
  /** What a browser needs to sign in with any passkey of this portal. @param challenge base64url */
  request(challenge: string): Promise<object>;
  /** The device's new counter; null unless the response is signed by the passkey. */
  verify(response: PasskeyResponse, passkey: Passkey): Promise<{ readonly counter: number } | null>;
}

/** Parses a browser's response; null when it is not one. */
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
