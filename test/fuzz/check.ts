/** Checks responses against the contract, independently of the implementation. */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import { type FuzzBody, idOf } from './bodies.ts';

const BATCH_BYTES_MAX = 1 << 20;

/** `problems` is empty if the response is correct; `accepted` and `rejected` are message ids. */
export interface CheckedResponse {
  problems: string[];
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
    const problems: string[] = [];
    if (status >= 500 || status === 429) problems.push(`status ${status}`);
    if (isValid === undefined) problems.push(`status ${status} is not documented`);
    else if (!isValid(parsed)) problems.push(`the body does not match its schema: ${ajv.errorsText(isValid.errors)}`);
    return problems.length > 0 ? withProblems(...problems) : checkBatch(body, status, parsed as MessagesResponse);
  };
}

const withProblems = (...problems: string[]): CheckedResponse => ({ problems, accepted: [], rejected: [] });

function checkBatch({ messages, text }: FuzzBody, status: number, response: MessagesResponse): CheckedResponse {
  if (messages === null) return status === 200 ? withProblems('an invalid batch was accepted') : withProblems();
  if (response.accepted === undefined)
    return Buffer.byteLength(text) > BATCH_BYTES_MAX ? withProblems() : withProblems('the whole batch was rejected');
  const rejectedIds = new Set(response.rejections.map(({ messageId }) => messageId.toLowerCase()));
  const ids = messages.map(idOf).filter((id) => id !== null);
  const accepted = ids.filter((id) => !rejectedIds.has(id));
  const problems: string[] = [];
  if (response.accepted + response.rejected !== messages.length)
    problems.push('accepted + rejected does not equal the number of messages');
  if (response.success !== response.accepted > 0) problems.push('success does not match accepted > 0');
  if ((status === 200) !== response.success) problems.push(`status ${status} with success ${response.success}`);
  if (accepted.length !== response.accepted)
    problems.push(`${accepted.length} ids are not in rejections, but accepted is ${response.accepted}`);
  return { problems, accepted, rejected: ids.filter((id) => rejectedIds.has(id)) };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
