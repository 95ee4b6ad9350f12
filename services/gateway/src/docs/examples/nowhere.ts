import { type Example, envelope } from '@playline/api-docs';
import type { ExampleContext } from './context.ts';

/** Requests that reach no operation. */
export function createNowhereExamples(context: ExampleContext): Example[] {
  const message = 'There is no such path, or not with this method.';
  const answer = envelope(context, 'RESOURCE_NOT_FOUND', { message });
  return [
    {
      name: 'unknown-path',
      title: 'A path with a letter too few',
      request: { method: 'POST', target: '/v1/audience/message', headers: {}, body: null },
      answer,
    },
    {
      name: 'wrong-method',
      title: 'A method that the path does not have',
      request: { method: 'GET', target: '/v1/audience/messages', headers: {}, body: null },
      answer,
    },
  ];
}
