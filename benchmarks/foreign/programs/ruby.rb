# Reads paths from the standard input and prints the syntax errors of Ruby for each, tab-separated.
$VERBOSE = nil
$stdin.each_line(chomp: true) do |path|
  RubyVM::InstructionSequence.compile(File.read(path, encoding: "UTF-8"), path)
  puts path
rescue SyntaxError, ArgumentError, EncodingError => error
  puts "#{path}\t#{error.message.gsub(/\s+/, ' ')}"
end
