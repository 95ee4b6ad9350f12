/** Checks the response to a body against the contract alone. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { type FuzzBody, idOf } from './bodies.ts';

const BATCH_BYTES_MAX = 1 << 20;

/** `faults` is empty if the response is correct; `accepted` and `rejected` are message ids. */
export interface CheckedResponse {
  faults: string[];
  accepted: string[];
  rejected: string[];
}

interface MessagesResponse {
  success: boolean;
  accepted: number;
  rejected: number;
  rejections: { messageId: string }[];
}

export type CheckResponse = (body: FuzzBody, response: { status: number; text: string }) => CheckedResponse;

/** @param openapi the document that the gateway serves */
export function createCheck(openapi: object): CheckResponse {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema(openapi, 'openapi');
  const schemas = new Map<number, ValidateFunction>();
  for (const status of [200, 400, 401, 429, 500]) {
    const $ref = `openapi#/paths/~1v1~1audience~1messages/post/responses/${status}/content/application~1json/schema`;
    schemas.set(status, ajv.compile({ $ref }));
  }
  return (body, { status, text }) => {
    const parsed = parseJson(text);
    const isValid = schemas.get(status);
    const faults: string[] = [];
    if (status >= 500 || status === 429) faults.push(`status ${status}`);
    if (isValid === undefined) faults.push(`status ${status} is not documented`);
    else if (!isValid(parsed)) faults.push(`the body is not as documented: ${ajv.errorsText(isValid.errors)}`);
    return faults.length > 0 ? withFaults(...faults) : checkBatch(body, status, parsed as MessagesResponse);
  };
}

const withFaults = (...faults: string[]): CheckedResponse => ({ faults, accepted: [], rejected: [] });

function checkBatch({ messages, text }: FuzzBody, status: number, response: MessagesResponse): CheckedResponse {
  if (messages === null) return status === 200 ? withFaults('a body that is not a batch was accepted') : withFaults();
  if (response.accepted === undefined)
    return Buffer.byteLength(text) > BATCH_BYTES_MAX ? withFaults() : withFaults('the whole batch was refused');
  const named = new Set(response.rejections.map(({ messageId }) => messageId.toLowerCase()));
  const ids = messages.map(idOf).filter((id) => id !== null);
  const accepted = ids.filter((id) => !named.has(id));
  const faults: string[] = [];
  if (response.accepted + response.rejected !== messages.length)
    faults.push('accepted + rejected is not the number of messages');
  if (response.success !== response.accepted > 0) faults.push('success is not accepted > 0');
  if ((status === 200) !== response.success) faults.push(`status ${status} with success ${response.success}`);
  if (accepted.length !== response.accepted)
    faults.push(`no rejection names ${accepted.length} ids, but ${response.accepted} messages were accepted`);
  return { faults, accepted, rejected: ids.filter((id) => named.has(id)) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
