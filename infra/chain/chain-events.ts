/** Events that a node pushes, so that a chain at rest costs nothing. */
export interface ChainEvents {
  /** Whether the node is there now. */
  isOpen(): boolean;
  close(): void;
}

export interface ChainListener {
  /** The node is connected, for the first time or again. Earlier events are lost. */
  onOpen(): void;
  onBlock(): void;
  /** A transaction waits for a block. */
  onTransaction(): void;
}

const AGAIN_MS = 250;
const SUBSCRIPTIONS = ['newHeads', 'newPendingTransactions'];

interface Told {
  readonly method?: string;
  readonly params?: { readonly result?: unknown };
}

/** Listens to a node until closed, and reconnects whenever the node is back. */
export function openChainEvents(rpc: string, listener: ChainListener): ChainEvents {
  let socket: WebSocket;
  let timer: NodeJS.Timeout | undefined;
  let [isOpen, isClosed] = [false, false];
  const hear = (text: string) => {
    const { method, params } = JSON.parse(text) as Told;
    if (method !== 'eth_subscription') return;
    // A text is the hash of a transaction; an object is a block.
    if (typeof params?.result === 'string') listener.onTransaction();
    else listener.onBlock();
  };
  const connect = () => {
    socket = new WebSocket(rpc.replace(/^http/, 'ws'));
    socket.addEventListener('open', () => {
      isOpen = true;
      for (const [id, name] of SUBSCRIPTIONS.entries())
        socket.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'eth_subscribe', params: [name] }));
      listener.onOpen();
    });
    socket.addEventListener('message', ({ data }) => hear(String(data)));
    // A close event follows every error.
    socket.addEventListener('close', () => {
      isOpen = false;
      if (!isClosed) timer = setTimeout(connect, AGAIN_MS).unref();
    });
  };
  connect();
  return {
    isOpen: () => isOpen,
    close: () => {
      isClosed = true;
      clearTimeout(timer);
      socket.close();
    },
  };
}
