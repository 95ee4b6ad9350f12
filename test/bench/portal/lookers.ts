import { get, type IncomingMessage } from 'node:http';
import type { TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import type { Scene } from './scene.ts';

/** A user who watches live messages. */
export interface Looker {
  /** Number of received events. */
  readonly events: number;
  /** Called with each new event and the moment at which it was received. */
  onEvent: (event: { readonly kind: string; readonly messageId?: string }, atMs: number) => void;
  close(): void;
}

/** Opens a stream, and waits until it reports that it watches. @throws Error for an answer other than 200 */
export async function openLooker(
  { origin, projectId, environment }: Scene,
  browser: Pick<TestBrowser, 'cookie'>,
): Promise<Looker> {
  const url = `${origin}/projects/${projectId}/environments/${environment}/live/events`;
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent: false, headers: { cookie: browser.cookie } }, resolve).once('error', reject);
  });
  if (answer.statusCode !== 200) throw new Error(`the stream was answered with ${answer.statusCode}`);
  const looker = { events: 0, onEvent: () => {}, close: () => void answer.destroy() } as Looker & { events: number };
  answer.on('error', () => {});
  await new Promise<void>((resolve) => {
    let rest = '';
    answer.setEncoding('utf8').on('data', (chunk: string) => {
      const atMs = performance.now();
      const parts = (rest + chunk).split('\n\n');
      rest = parts.pop() ?? '';
      for (const part of parts.filter((each) => each.startsWith('data: '))) {
        const event = JSON.parse(part.slice('data: '.length));
        if (event.kind === 'status' && event.isWatching) resolve();
        if (event.kind === 'message') looker.events++;
        looker.onEvent(event, atMs);
      }
    });
  });
  return looker;
}

export async function openLookers(scene: Scene, count: number): Promise<Looker[]> {
  const lookers: Looker[] = [];
  for (let at = 0; at < count; at++)
    lookers.push(await openLooker(scene, scene.lookers[at % scene.lookers.length] ?? scene.browser));
  return lookers;
}
