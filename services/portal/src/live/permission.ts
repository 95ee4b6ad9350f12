import type { EndReason } from './event.ts';

/** A question that is asked again and again. */
export interface PermissionParts {
  isStillAllowed(): boolean | Promise<boolean>;
  readonly everyMs: number;
  readonly onEnd: (reason: EndReason) => void;
}

/**
 * Asks whether somebody may still do what goes on. Ends it when the answer is no, and when none has come by the time of the
 * next question: within two of these times, whatever happens.
 * @returns a call that stops the asking
 */
export function watchPermission({ isStillAllowed, everyMs, onEnd }: PermissionParts): () => void {
  let isAsked = false;
  let isStopped = false;
  const end = (reason: EndReason) => {
    if (isStopped) return;
    stop();
    onEnd(reason);
  };
  const ask = async () => {
    if (isAsked) return end('permission unknown');
    isAsked = true;
    try {
      if ((await isStillAllowed()) !== true) end('not allowed any more');
      isAsked = false;
    } catch {
      end('permission unknown');
    }
  };
  const timer = setInterval(ask, everyMs);
  const stop = () => {
    isStopped = true;
    clearInterval(timer);
  };
  return stop;
}
