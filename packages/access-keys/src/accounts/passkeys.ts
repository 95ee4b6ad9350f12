import type { Passkey } from './account.ts';

export interface PasskeyOwner {
  readonly id: string;
  /** Shown by the device when the person chooses a passkey. */
  readonly login: string;
  readonly name: string;
  readonly passkeys: readonly Pick<Passkey, 'id' | 'transports'>[];
}

export interface PasskeyResponse {
  /** base64url */
  readonly id: string;
  /** base64url, from the signed client data. */
  readonly challenge: string;
  readonly json: object;
}

/** WebAuthn ceremonies for one portal. Devices sign the portal's domain and origin. */
export interface Passkeys {
  /** Returns the options for `navigator.credentials.create`. @param challenge base64url */
  creation(owner: PasskeyOwner, challenge: string): Promise<object>;
  /** Returns the new passkey, without a name; null if the response is invalid. */
  read(response: PasskeyResponse): Promise<Omit<Passkey, 'name' | 'createdAt'> | null>;
  /** Returns the options for `navigator.credentials.get`, which accept any passkey. @param challenge base64url */
  request(challenge: string): Promise<object>;
  /** Returns the device's new counter; null if the passkey did not sign the response. */
  verify(response: PasskeyResponse, passkey: Passkey): Promise<{ readonly counter: number } | null>;
}

/** Parses a browser's response; null if it is malformed. */
export function parsePasskeyResponse(sent: unknown): PasskeyResponse | null {
  const json = toObject(sent);
  const clientData = toObject(json?.response)?.clientDataJSON;
  if (json === null || typeof json.id !== 'string' || typeof clientData !== 'string') return null;
  const challenge = toObject(toJson(Buffer.from(clientData, 'base64url').toString('utf8')))?.challenge;
  return typeof challenge === 'string' ? { id: json.id, challenge, json } : null;
}

const toObject = (value: unknown): Readonly<Record<string, unknown>> | null =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;

function toJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
