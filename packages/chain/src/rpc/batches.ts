import { NodeFault, type RpcAnswer, type RpcCall } from '../node.ts';
import { toFault } from './faults.ts';
import { parseAnswer, RequestTooLarge } from './transport.ts';

/** Calls in one request. Some providers refuse more. */
const BATCH_MAX = 50;

/**
 * The answers in the order of the requests.
 * @throws NodeFault when one is missing
 */
export function toAnswersOf(requests: readonly { readonly id: number }[], body: readonly unknown[]): RpcAnswer[] {
  const answers = new Map(body.map(parseAnswer).map(({ id, answer }) => [id, answer]));
  return requests.map(({ id }) => {
    const answer = answers.get(id);
    if (answer === undefined) throw new NodeFault('unreachable', 'it left a question unanswered');
    return answer;
  });
}

/** The one error that answers a batch of several calls: an object, or a list of that object alone. */
function refusalIn(body: unknown): NodeFault | null {
  if (Array.isArray(body) && body.length !== 1) return null;
  const { answer } = parseAnswer(Array.isArray(body) ? body[0] : body);
  if (!answer.ok) return toFault(answer.error);
  return Array.isArray(body) ? null : new NodeFault('unreachable', 'it does not answer a batch');
}

/** Sends many calls to one node, in batches until it refuses one, from then on each in its own request. */
export class BatchSender {
  private readonly send: (body: unknown) => Promise<unknown>;
  private takesBatches = true;
  private lastId = 0;

  constructor(send: (body: unknown) => Promise<unknown>) {
    this.send = send;
  }

  /** @returns an answer for each call, in their order */
  async askMany(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = [];
    for (let from = 0; from < calls.length; from += BATCH_MAX) {
      const some = calls.slice(from, from + BATCH_MAX);
      for (const each of await (this.takesBatches && some.length > 1 ? this.askBatch(some) : this.askEach(some)))
        answers.push(each);
    }
    return answers;
  }

  /** Like `askMany`, each call in its own request. */
  async askEach(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const answers: RpcAnswer[] = [];
    for (const call of calls) answers.push(parseAnswer(await this.send(this.toRequest(call))).answer);
    return answers;
  }

  private async askBatch(calls: readonly RpcCall[]): Promise<RpcAnswer[]> {
    const requests = calls.map((call) => this.toRequest(call));
    const body = await this.sendBatch(requests);
    const refusal = body === null ? null : refusalIn(body);
    // A rate limit is no refusal of batches.
    if (refusal?.kind === 'busy') throw refusal;
    if (body !== null && refusal === null) return toAnswersOf(requests, body as readonly unknown[]);
    this.takesBatches = false;
    return this.askEach(calls);
  }

  /** @returns null when the node refuses the request because of its size */
  private async sendBatch(requests: readonly unknown[]): Promise<unknown> {
    try {
      return await this.send(requests);
    } catch (fault) {
      if (fault instanceof RequestTooLarge) return null;
      throw fault;
    }
  }

  private toRequest({ method, params }: RpcCall) {
    return { jsonrpc: '2.0', id: ++this.lastId, method, params };
  }
}
