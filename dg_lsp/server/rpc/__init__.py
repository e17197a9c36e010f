"""JSON-RPC with one client over standard input and output, on pygls; the only package that knows the insides of pygls.

From pygls come the registry of features and commands, the workspace's folders, the capabilities, the converter and the
calls to the client. Each line below names what is overridden, the defect in pygls, and the test that pygls fails:

send_request        a late reply is an error shown to the user          test_a_reply_that_nobody_waits_for
_send_data          it logs each message, and hides one that is no JSON  test_a_result_that_is_no_json_is_an_error
lsp_initialize      it splits lines as str.splitlines does, so the       test_a_form_feed_ends_no_line
                    documents, and their position encoding, are ours
lsp_exit            it exits with 0 without a shutdown                   test_a_client_that_did_not_say_shutdown
lsp_text_document__did_open    as for lsp_initialize                     test_a_form_feed_ends_no_line
lsp_text_document__did_change  a column past the end is cut short        test_a_column_past_the_end
lsp_text_document__did_close   as for lsp_initialize                     test_thousands_of_requests_and_cancels
lsp_notebook_document__did_open    as for lsp_initialize                 test_a_form_feed_ends_no_line
lsp_notebook_document__did_change  as for a text document                test_a_column_past_the_end
lsp_notebook_document__did_close   as for lsp_initialize                 test_thousands_of_requests_and_cancels
lsp_workspace__execute_command the error quotes the arguments            test_commands

Instead of these, which are never called:

handle_message      bad messages are shown to the user, not answered     test_what_is_no_message
_handle_request     no states, no answer to params that do not fit       test_params_that_do_not_fit
_handle_notification  failures are shown to the user                     test_a_notification_whose_handler_fails
_execute_handler    SystemExit of a handler ends the server   test_a_handler_that_leaves_does_not_end_the_server
_send_handler_result  the traceback goes to the client                   test_what_an_exception_says_stays_here
start_io            it writes the protocol where prints go, in the loop  test_a_stray_print_does_not_reach_the_client
"""
