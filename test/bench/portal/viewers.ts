import { get, type IncomingMessage } from 'node:http';
import type { TestBrowser } from '../../../services/portal/src/test/test-browser.ts';
import type { Scene } from './scene.ts';

export interface Viewer {
  readonly events: number;
  /** Called with each new event and the moment at which it was received. */
  onEvent: (event: { readonly kind: string; readonly messageId?: string }, atMs: number) => void;
  close(): void;
}

/** Opens a stream, and waits until it reports that it watches. @throws Error for an answer other than 200 */
export async function openViewer(
  { origin, projectId, environment }: Scene,
  browser: Pick<TestBrowser, 'cookie'>,
): Promise<Viewer> {
  const url = `${origin}/projects/${projectId}/environments/${environment}/live/events`;
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    get(url, { agent: false, headers: { cookie: browser.cookie } }, resolve).once('error', reject);
  });
  if (answer.statusCode !== 200) throw new Error(`the stream was answered with ${answer.statusCode}`);
  const viewer = { events: 0, onEvent: () => {}, close: () => void answer.destroy() } as Viewer & { events: number };
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
        if (event.kind === 'message') viewer.events++;
        viewer.onEvent(event, atMs);
      }
    });
  });
  return viewer;
}

export async function openViewers(scene: Scene, count: number): Promise<Viewer[]> {
  const viewers: Viewer[] = [];
  for (let at = 0; at < count; at++)
    viewers.push(await openViewer(scene, scene.viewers[at % scene.viewers.length] ?? scene.browser));
  return viewers;
}
