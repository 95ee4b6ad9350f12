-- Rejections have no owner, so no text of a client may stand in them: the gateway tells of libraries that its settings name.
ALTER TABLE message_rejections
    COMMENT COLUMN library 'context.library where CLIENT_LIBRARIES of the gateway has it, else other; empty when absent or no text',
    COMMENT COLUMN library_version 'context.libraryVersion where it is digits and dots, else empty'
