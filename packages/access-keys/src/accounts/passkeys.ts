import type { Passkey } from './account.ts';

export interface PasskeyOwner {
  readonly id: string;
  /** Shown by the device when it offers a choice. */
  readonly login: string;
  readonly name: string;
  readonly passkeys: readonly Pick<Passkey, 'id' | 'transports'>[];
}

export interface PasskeyResponse {
  /** base64url */
  readonly id: string;
  /** base64url; from the signed client data. */
  readonly challenge: string;
  readonly json: object;
}

/** The rules of passkeys for one portal, whose domain and origin devices sign. */
export interface Passkeys {
  /** Options for a browser to create a passkey. @param challenge base64url */
  creation(owner: PasskeyOwner, challenge: string): Promise<object>;
  /** The new passkey, without a name; null when the response is invalid. */
  read(response: PasskeyResponse): Promise<Omit<Passkey, 'name' | 'createdAt'> | null>;
  /** Options for a browser to sign in with any passkey. @param challenge base64url */
  request(challenge: string): Promise<object>;
  /** The device's new counter; null unless the passkey signed the response. */
  verify(response: PasskeyResponse, passkey: Passkey): Promise<{ readonly counter: number } | null>;
}

/** Null for anything but a browser's response. */
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
