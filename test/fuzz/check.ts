/** Checks the answer to one body by the contract alone. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { type FuzzBody, idOf } from './bodies.ts';

const BATCH_BYTES_MAX = 1 << 20;

/** Empty `faults` when the answer is correct, and the ids of accepted and of rejected messages. */
export interface CheckedAnswer {
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

export type CheckAnswer = (body: FuzzBody, answer: { status: number; text: string }) => CheckedAnswer;

/** @param openapi the document that the gateway serves */
export function createCheck(openapi: object): CheckAnswer {
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

const withFaults = (...faults: string[]): CheckedAnswer => ({ faults, accepted: [], rejected: [] });

function checkBatch({ messages, text }: FuzzBody, status: number, answer: MessagesResponse): CheckedAnswer {
  if (messages === null) return status === 200 ? withFaults('a body that is not a batch was accepted') : withFaults();
  if (answer.accepted === undefined)
    return Buffer.byteLength(text) > BATCH_BYTES_MAX ? withFaults() : withFaults('the whole batch was refused');
  const named = new Set(answer.rejections.map(({ messageId }) => messageId.toLowerCase()));
  const ids = messages.map(idOf).filter((id) => id !== null);
  const accepted = ids.filter((id) => !named.has(id));
  const faults: string[] = [];
  if (answer.accepted + answer.rejected !== messages.length)
    faults.push('accepted + rejected is not the number of messages');
  if (answer.success !== answer.accepted > 0) faults.push('success is not accepted > 0');
  if ((status === 200) !== answer.success) faults.push(`status ${status} with success ${answer.success}`);
  if (accepted.length !== answer.accepted)
    faults.push(`no rejection names ${accepted.length} ids, but ${answer.accepted} messages were accepted`);
  return { faults, accepted, rejected: ids.filter((id) => named.has(id)) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
